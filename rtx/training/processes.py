"""What several processes that train one model must agree on, and what each keeps for itself."""

import os
from typing import Any

import torch
import torch.distributed as dist
from lightning import Trainer
from torch import Tensor

from rtx.training.states import CannotGoOn

# variables by which torchrun, Lightning, SLURM and MPI number the processes, before these are connected
RANKS = ("RANK", "GROUP_RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def first() -> bool:
    """Return whether this is the first of the processes that will train together, or the only one."""
    return all(os.environ.get(name, "0") == "0" for name in RANKS)


def count() -> int:
    """Return the number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def of_all(value: Any) -> list[Any]:
    """Return the values of all processes in order."""
    found = [value] * count()
    if len(found) > 1:
        dist.all_gather_object(found, value)
    return found


def mine(values: list[Any]) -> Any:
    """Return this process's value of those that `of_all` returned.

    Raises:
        CannotGoOn: if the number of processes was different then.
    """
    if len(values) != count():
        raise CannotGoOn(f"resume: expected {len(values)} processes, as the run had before, got {count()}")
    return values[dist.get_rank() if len(values) > 1 else 0]


def highest(trainer: Trainer, value: int) -> int:
    """Return the highest of all processes' values."""
    if count() == 1:
        return value
    return int(trainer.strategy.reduce(torch.tensor(value, device=trainer.strategy.root_device), reduce_op="max"))


def total(trainer: Trainer, values: Tensor) -> Tensor:
    """Return the sum of all processes' values, without a gradient."""
    return trainer.strategy.reduce(values.detach().clone(), reduce_op="sum") if count() > 1 else values.detach()
