"""Batches in a seeded order: the same seed and epoch give the same batches, on any machine."""

from functools import partial

import torch.distributed
from torch.utils.data import DataLoader, DistributedSampler

from rtx.nn.validate import check_positive
from rtx.tasks.task import Batch, Task, collate


def loader(task: Task, split: str, batch_size: int, seed: int = 0) -> DataLoader[Batch]:
    """Batches of a split; training is shuffled anew each epoch, the others keep their order.

    Args:
        task: whose examples to read.
        split: "train", "validation" or "test".
        batch_size: sequences per batch (per process, where several train together).
        seed: of the order. The order of an epoch depends on it and on the epoch's number alone, so a resumed run
            goes on as the undisturbed one would.

    Raises:
        ValueError: if the split is unknown or the batch size is below 1.
    """
    check_positive("batch_size", batch_size)
    examples = task.split(split)
    sampler: DistributedSampler[Batch] | None = None
    if split == "train":
        # torch's distributed sampler, for one process too: it is the one that a trainer tells the epoch
        together = torch.distributed.is_available() and torch.distributed.is_initialized()
        replicas, rank = (torch.distributed.get_world_size(), torch.distributed.get_rank()) if together else (1, 0)
        sampler = DistributedSampler(examples, replicas, rank, shuffle=True, seed=seed)  # type: ignore[arg-type]
    return DataLoader(examples, batch_size, sampler=sampler, collate_fn=partial(collate, per=task.per))  # type: ignore[arg-type]
