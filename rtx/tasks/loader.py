"""Batches in a seeded order: the same seed and epoch give the same batches, on any machine."""

from collections.abc import Iterator
from functools import partial

import torch
from torch.utils.data import DataLoader, Sampler

from rtx.nn.validate import check_choice, check_positive
from rtx.tasks.task import Batch, Task, collate

UNSHUFFLED = ("as it is", "by length")
ORDERS = ("shuffled", "fresh", "bucketed", "columns", *UNSHUFFLED)
POOL = 100  # batches whose sequences are sorted by length together


class BatchOrder(Sampler[list[int]]):
    """Which sequences are in a batch together, and in which order. It depends only on the seed and the epoch's number.

    Beside "shuffled" and "as it is", there are:

    - "fresh": other sequences in each epoch, as many as there are `lengths`.
    - "bucketed": shuffled, but sequences of about the same length are together, so there is little padding.
    - "columns": one long text is cut into `batch_size` columns, and a batch has the next piece of each column. So a
      state can be kept from batch to batch.
    - "by length": the longest first, which gives the least padding. It is for splits whose order has no meaning.
    """

    def __init__(self, lengths: list[int], batch_size: int, order: str = "shuffled", seed: int = 0) -> None:
        self.lengths, self.batch_size = lengths, check_positive("batch_size", batch_size)
        self.order, self.seed, self.epoch = check_choice("order", order, ORDERS), seed, 0
        self.skipped = 0
        self.sampler = self  # Lightning calls `sampler.set_epoch`
        if order == "columns" and len(lengths) < batch_size:
            raise ValueError(f"batch_size: expected at most {len(lengths)} pieces of the text, got {batch_size}")

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch whose order comes next."""
        self.epoch = epoch

    def skip(self, batches: int) -> None:
        """Leave out the first batches of the next epoch, because a resumed run has had them. They still count."""
        self.skipped = batches

    def __len__(self) -> int:
        """The number of batches."""
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        batches, self.skipped = self._batches()[self.skipped :], 0
        yield from batches

    def _batches(self) -> list[list[int]]:
        size, count = self.batch_size, len(self.lengths)
        if self.order == "columns":
            rows = count // size
            return [[row + rows * column for column in range(size)] for row in range(rows)]
        draws = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        order = list(range(count)) if self.order in UNSHUFFLED else torch.randperm(count, generator=draws).tolist()
        if self.order == "by length":
            order.sort(key=self.lengths.__getitem__, reverse=True)
        if self.order == "fresh":
            order = [self.epoch * count + i for i in order]
        if self.order == "bucketed":
            pools = (order[i : i + POOL * size] for i in range(0, count, POOL * size))
            order = [i for pool in pools for i in sorted(pool, key=self.lengths.__getitem__)]
        batches = [order[i : i + size] for i in range(0, count, size)]
        if self.order == "bucketed":
            batches = [batches[i] for i in torch.randperm(len(batches), generator=draws).tolist()]
        return batches


def loader(
    task: Task, split: str, batch_size: int, seed: int = 0, order: str | None = None, limit: int | None = None
) -> DataLoader[Batch]:
    """Return the batches of a split, of its first sequences if there is a `limit`.

    `order` is that of `BatchOrder`; by default "shuffled" for training and "as it is" otherwise. Lightning sets the
    epoch. In your own loop, call `batch_sampler.set_epoch`; otherwise every epoch is epoch 0.
    """
    examples = task.split(split)
    order = order or ("shuffled" if split == "train" else "as it is")
    size = len(examples) if limit is None else min(check_positive("limit", limit), len(examples))
    if order == "fresh":
        if not getattr(examples, "endless", False):
            fixed = f"{task.name} has a fixed set of {len(examples)}"
            raise ValueError(f"order or batching: 'fresh' needs a task that draws new sequences, but {fixed}")
    elif limit is not None:
        examples = examples[:limit]
    lengths = [len(examples[i].inputs) for i in range(size)] if order in ("bucketed", "by length") else [0] * size
    batches = BatchOrder(lengths, batch_size, order, seed)
    own = torch.Generator().manual_seed(seed)  # otherwise each epoch would draw from the generator that dropout uses
    together = partial(collate, per=task.per)
    return DataLoader(examples, batch_sampler=batches, collate_fn=together, generator=own)  # type: ignore[arg-type]
