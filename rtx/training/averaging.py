"""NT-ASGD: plain SGD until validation stops improving, then the average of all the weights from there on.

Merity, Keskar & Socher (2018), Regularizing and Optimizing LSTM Language Models, Algorithm 1.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from rtx.nn.validate import check_positive
from rtx.training.states import Exploded


def non_monotonic_asgd(parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0) -> torch.optim.ASGD:
    """torch's averaged SGD at a constant rate, whose averaging waits for `Trigger`; until then it is SGD.

    Args:
        parameters: what is trained.
        lr: the rate.
        weight_decay: share of each weight subtracted per step, times the rate.
    """
    return torch.optim.ASGD(parameters, lr, lambd=0.0, t0=float("inf"), weight_decay=weight_decay)


class Trigger:
    """Starts the averaging when a validation loss is worse than the best of those before the last `patience`.

    Args:
        optimizer: of `non_monotonic_asgd`.
        patience: n, the non-monotone interval; 5 in the paper.
        losses: those observed so far, by a trigger before this one; what this one observes is added to it.

    Raises:
        ValueError: if `patience` is below 1.
    """

    def __init__(self, optimizer: torch.optim.ASGD, patience: int = 5, losses: list[float] | None = None) -> None:
        self.optimizer, self.patience = optimizer, check_positive("patience", patience)
        self.losses = [] if losses is None else losses

    @property
    def fired(self) -> bool:
        """Whether weights are being averaged."""
        return self.optimizer.param_groups[0]["t0"] < float("inf")

    def settle(self) -> None:
        """Have a GPU find each step's rate and share of the average itself.

        Of itself torch asks it for two numbers per weight and step. To be called before the first step, and after a
        checkpoint is loaded, which says how it was where it was written.
        """
        for group in self.optimizer.param_groups:
            group["capturable"] = all(p.is_cuda for p in group["params"])
            for p in group["params"]:
                if one := self.optimizer.state.get(p):  # torch loads the number of steps to the CPU
                    one["step"] = one["step"].to(p.device)

    def observe(self, loss: float) -> bool:
        """Take note of a validation loss; whether weights are averaged from here on.

        Raises:
            Exploded: if the loss is not finite.
        """
        if not abs(loss) < float("inf"):
            raise Exploded(f"loss: expected a finite number, got {loss!r}")
        # Algorithm 1: t > n and v > min of the losses but for the last n
        if not self.fired and len(self.losses) > self.patience and loss > min(self.losses[: -self.patience]):
            for group in self.optimizer.param_groups:
                # torch finds each step's share in the average one step ahead; a frozen parameter has made none
                steps = [float(one["step"]) for p in group["params"] if (one := self.optimizer.state.get(p))]
                group["t0"] = max(steps, default=0.0) - 1
        self.losses.append(loss)
        return self.fired


@contextmanager
def averaged(optimizer: torch.optim.ASGD) -> Iterator[None]:
    """The model with the averaged weights, for validation or for saving; afterwards with those of the last step."""
    parameters = [p for group in optimizer.param_groups for p in group["params"] if "ax" in optimizer.state[p]]
    last: list[Tensor] = [p.detach().clone() for p in parameters]
    try:
        _copy(parameters, [optimizer.state[p]["ax"] for p in parameters])
        yield
    finally:
        _copy(parameters, last)


@torch.no_grad()
def _copy(parameters: list[nn.Parameter], values: list[Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)
