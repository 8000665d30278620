"""The batches that a model is scored on, and the test that a task has of its own."""

from collections.abc import Callable

from torch import nn
from torch.utils.data import DataLoader

from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Scores, Split, Task

AT_ONCE = 32


def examination(task: Task, stateful: bool) -> Callable[[nn.Module, Split, int | None], Scores] | None:
    """Return the task's own test if it has one.

    The test of a text carries a model's state along the text. A model that was validated window by window is also
    tested window by window, by its metric alone.
    """
    return None if task.per == "token" and not stateful else task.examine


def evaluation_batches(task: Task, split: str, stateful: bool, limit: int | None) -> DataLoader[Batch]:
    """Return the batches of a split for scoring, of the first `limit` examples.

    With `stateful`, a batch is the next piece of a text, so that a state can be carried along. Otherwise sequences of
    similar length are put together.
    """
    if stateful:
        return loader(task, split, 1, order="columns", limit=limit)
    return loader(task, split, AT_ONCE, order="by length", limit=limit)
