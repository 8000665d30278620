"""The batches that a model is trained on and scored by."""

from collections.abc import Callable

from torch import nn
from torch.utils.data import DataLoader

from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Scores, Split, Task
from rtx.training.settings import Settings

AT_ONCE = 32


def training_batches(task: Task, settings: Settings, seed: int, skip: int = 0) -> DataLoader[Batch]:
    """The training split, in the order of the settings.

    Args:
        task: whose examples.
        settings: size of a batch, order, and how many examples at most.
        seed: of the order.
        skip: so many batches of the first epoch are left out: those that a resumed run has had.
    """
    batches = loader(task, "train", settings.batch_size, seed, settings.batching, settings.limit)
    batches.batch_sampler.skip(skip)  # type: ignore[union-attr]
    return batches


def examination(task: Task, carry: bool) -> Callable[[nn.Module, Split, int | None], Scores] | None:
    """What a task measures of a model besides its metric, if anything; a text's is of models that carry their state.

    Another's windows are validated each by itself, and so they are tested.
    """
    return None if task.per == "token" and not carry else task.examine


def evaluation_batches(task: Task, split: str, carry: bool, limit: int | None) -> DataLoader[Batch]:
    """Sequences of about the same length together, whatever the batches of training; scores are sums over all.

    Args:
        task: whose examples.
        split: "train", "validation" or "test".
        carry: one piece of a text after the other, so that a state can be carried.
        limit: the first so many examples only; None: all.
    """
    if carry:
        return loader(task, split, 1, order="stream", limit=limit)
    return loader(task, split, AT_ONCE, order="by length", limit=limit)
