"""What several processes that train one model must agree on, or keep each for itself."""

import os
from typing import Any

import torch
import torch.distributed as dist
from lightning import Trainer
from torch import Tensor

from rtx.training.states import CannotGoOn

# how torchrun, Lightning, SLURM and MPI tell a process which of several it is, before they have met
RANKS = ("RANK", "GROUP_RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def first() -> bool:
    """Whether this is the first of the processes that will train together, or the only one."""
    return all(os.environ.get(name, "0") == "0" for name in RANKS)


def together() -> bool:
    """Whether this process trains with others."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def of_all(value: Any) -> list[Any]:
    """The values of all processes, in their order; of the only one, if it is alone."""
    if not together():
        return [value]
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def mine(values: list[Any]) -> Any:
    """What `of_all` found in this process.

    Raises:
        CannotGoOn: if there were more processes then, or fewer.
    """
    processes = dist.get_world_size() if together() else 1
    if len(values) != processes:
        raise CannotGoOn(f"resume: expected {len(values)} processes, as the run had before, got {processes}")
    return values[dist.get_rank() if together() else 0]


def highest(trainer: Trainer, value: int) -> int:
    """The highest of all processes' values."""
    if not together():
        return value
    return int(trainer.strategy.reduce(torch.tensor(value, device=trainer.strategy.root_device), reduce_op="max"))


def total(trainer: Trainer, values: Tensor) -> Tensor:
    """The sum of all processes' values; no gradient flows through it."""
    return trainer.strategy.reduce(values.detach().clone(), reduce_op="sum") if together() else values.detach()
