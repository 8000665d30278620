"""The optimisers and schedules that the settings name. All are torch's."""

from collections.abc import Callable, Iterable
from typing import Literal

from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from rtx.training.averaging import non_monotonic_asgd
from rtx.training.settings import Settings

MAKERS: dict[str, Callable[..., Optimizer]] = {"sgd": SGD, "adam": Adam, "nt-asgd": non_monotonic_asgd}


def make_optimizer(settings: Settings, parameters: Iterable[nn.Parameter]) -> Optimizer:
    """Return the optimiser, with the learning rate for the start."""
    return MAKERS[settings.optimizer](parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def make_schedule(
    settings: Settings, optimizer: Optimizer, best: Literal["min", "max"]
) -> StepLR | ReduceLROnPlateau | None:
    """Return what anneals the rate, every few epochs or when validation stops improving; None: the rate is constant."""
    if settings.anneal is None:
        return None
    if settings.anneal_every is not None:
        return StepLR(optimizer, settings.anneal_every, settings.anneal)
    return ReduceLROnPlateau(optimizer, best, factor=settings.anneal, patience=settings.patience)
