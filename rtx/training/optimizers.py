"""The optimisers and schedules that the settings name: torch's SGD and Adam, and NT-ASGD.

NT-ASGD is plain SGD until validation stops improving. From then on the weights are averaged over all updates. Merity,
Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models, Algorithm 1.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from rtx.training.settings import Settings


def make_optimizer(settings: Settings, parameters: Iterable[nn.Parameter]) -> Optimizer:
    """Return the optimiser, with the learning rate for the start."""
    makers: dict[str, Callable[..., Optimizer]] = {"sgd": SGD, "adam": Adam, "nt-asgd": non_monotonic_asgd}
    return makers[settings.optimizer](parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def make_schedule(
    settings: Settings, optimizer: Optimizer, best: Literal["min", "max"]
) -> StepLR | ReduceLROnPlateau | None:
    """Return what anneals the rate, every few epochs or when validation stops improving; None: the rate is constant."""
    if settings.anneal is None:
        return None
    if settings.anneal_every is not None:
        return StepLR(optimizer, settings.anneal_every, settings.anneal)
    return ReduceLROnPlateau(optimizer, best, factor=settings.anneal, patience=settings.patience)


def non_monotonic_asgd(parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0) -> torch.optim.ASGD:
    """Return torch's averaged SGD with a constant rate. It is plain SGD until a `Trigger` starts the averaging."""
    optimizer = torch.optim.ASGD(parameters, lr, lambd=0.0, t0=float("inf"), weight_decay=weight_decay)
    for group in optimizer.param_groups:  # otherwise torch copies two numbers per weight from a GPU at each step
        group["capturable"] = all(p.is_cuda for p in group["params"])
    return optimizer


class Trigger:
    """Starts the averaging when a validation loss is worse than the best of those before the last `patience`.

    `optimizer` is made by `non_monotonic_asgd`. `patience` is the paper's n. New losses are added to `losses`.
    """

    def __init__(self, optimizer: torch.optim.ASGD, patience: int, losses: list[float]) -> None:
        self.optimizer, self.patience, self.losses = optimizer, patience, losses

    @property
    def fired(self) -> bool:
        """Whether weights are being averaged."""
        return self.optimizer.param_groups[0]["t0"] < float("inf")

    def observe(self, loss: float) -> None:
        """Take a validation loss, and start the averaging if it is too high."""
        # Algorithm 1 (ICLR version, and the authors' code): t > n and v > min of the losses except the last n
        if not self.fired and len(self.losses) > self.patience and loss > min(self.losses[: -self.patience]):
            for group in self.optimizer.param_groups:
                # minus 1, because torch computes a step's share in the average one step ahead
                steps = [float(one["step"]) for p in group["params"] if (one := self.optimizer.state.get(p))]
                group["t0"] = max(steps, default=0.0) - 1
        self.losses.append(loss)


@contextmanager
def averaged(optimizer: torch.optim.ASGD) -> Iterator[None]:
    """Give the model the averaged weights inside the block, for validation or for saving."""
    parameters = [p for group in optimizer.param_groups for p in group["params"] if "ax" in optimizer.state[p]]
    last = [p.detach().clone() for p in parameters]
    try:
        for parameter in parameters:
            parameter.data.copy_(optimizer.state[parameter]["ax"])
        yield
    finally:
        for parameter, value in zip(parameters, last, strict=True):
            parameter.data.copy_(value)
