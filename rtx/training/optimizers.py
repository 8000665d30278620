"""The optimisers and schedules that settings name, all of torch."""

from collections.abc import Callable, Iterable
from typing import Literal

from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from rtx.training.averaging import non_monotonic_asgd
from rtx.training.settings import Settings

MAKERS: dict[str, Callable[..., Optimizer]] = {"sgd": SGD, "adam": Adam, "nt-asgd": non_monotonic_asgd}


def make_optimizer(settings: Settings, parameters: Iterable[nn.Parameter]) -> Optimizer:
    """The optimiser of that name, at the rate at the start."""
    return MAKERS[settings.optimizer](parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def make_schedule(
    settings: Settings, optimizer: Optimizer, best: Literal["min", "max"]
) -> StepLR | ReduceLROnPlateau | None:
    """What anneals the rate, every so many epochs or when validation stops improving; None where it is constant."""
    if settings.anneal is None:
        return None
    if settings.anneal_every is not None:
        return StepLR(optimizer, settings.anneal_every, settings.anneal)
    return ReduceLROnPlateau(optimizer, best, factor=settings.anneal, patience=settings.patience)
