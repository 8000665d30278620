"""The batches that a model is trained on and scored on."""

from collections.abc import Callable

from torch import nn
from torch.utils.data import DataLoader

from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Scores, Split, Task
from rtx.training.settings import Settings

AT_ONCE = 32


def training_batches(task: Task, settings: Settings, seed: int, skip: int = 0) -> DataLoader[Batch]:
    """Return the batches of the training split.

    Args:
        task: whose examples.
        settings: the size of a batch, the order, and a limit on the number of examples.
        seed: of the order.
        skip: number of batches to leave out of the first epoch, because a resumed run has already seen them.
    """
    batches = loader(task, "train", settings.batch_size, seed, settings.batching, settings.limit)
    batches.batch_sampler.skip(skip)  # type: ignore[union-attr]
    return batches


def examination(task: Task, stateful: bool) -> Callable[[nn.Module, Split, int | None], Scores] | None:
    """Return the task's own test if it has one.

    The test of a text carries a model's state along the text. A model that was validated window by window is also
    tested window by window, by its metric alone.
    """
    return None if task.per == "token" and not stateful else task.examine


def evaluation_batches(task: Task, split: str, stateful: bool, limit: int | None) -> DataLoader[Batch]:
    """Return the batches of a split for scoring. Scores are sums, so sequences of similar length are put together.

    Args:
        task: whose examples.
        split: "train", "validation" or "test".
        stateful: read the pieces of a text in order, one per batch, so that a state can be carried along.
        limit: use only the first so many examples; None: all.
    """
    if stateful:
        return loader(task, split, 1, order="columns", limit=limit)
    return loader(task, split, AT_ONCE, order="by length", limit=limit)
