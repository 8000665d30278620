"""The batches that a model is scored by."""

from torch.utils.data import DataLoader

from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Task

AT_ONCE = 32


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
