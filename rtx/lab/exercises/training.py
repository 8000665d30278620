"""Exercise of notebook 11: a step of gradient descent whose gradient is clipped, and when.

The authors' code for music sets the gradient to zero, clips it, and calls backward then: it clips nothing (Wang et al.
2019, R-Transformer; see the errata).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Loss = Callable[[Tensor], Tensor]


def _cases() -> list[tuple[Tensor, Loss, float, float]]:
    """Steep losses, and one so flat that nothing is to be clipped; the step before left its gradient in `w.grad`."""
    cases: list[tuple[Tensor, Loss, float, float]] = []
    steep: Loss = lambda w: 5 * w.square().sum()  # noqa: E731
    flat: Loss = lambda w: 0.1 * w.sin().sum()  # noqa: E731
    # limits on both sides of 1, and two rates: who writes 1.0 or 0.1 for them is found out
    for loss, rate, clip in ((steep, 0.1, 1.0), (flat, 0.1, 0.25), (steep, 0.5, 2.5), (steep, 0.2, 0.25)):
        w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
        w.grad = torch.tensor([3.0, 0.2, -1.0])
        cases.append((w, loss, rate, clip))
    return cases


def _clipped(gradient: Tensor, norm: float) -> Tensor:
    return gradient * min(1.0, norm / float(gradient.norm()))


def _step(change: Callable[[Tensor, Tensor, float], Tensor]) -> Callable[[Tensor, Loss, float, float], Tensor]:
    """A step along `change(gradient, that of the step before, clip)`."""

    def step(w: Tensor, loss: Loss, rate: float, clip: float) -> Tensor:
        (gradient,) = torch.autograd.grad(loss(w), w)
        assert w.grad is not None
        return (w - rate * change(gradient, w.grad, clip)).detach()

    return step


clipped_step = Exercise(
    cases=_cases,
    solution=_step(lambda now, before, clip: _clipped(now, clip)),
    bugs={
        "this step's gradient is not clipped: clip after backward; before, only that of the step before is there": (
            _step(lambda now, before, clip: now)
        ),
        "clipped before backward, and the gradient of the step before is still in the sum": (
            _step(lambda now, before, clip: now + _clipped(before, clip))
        ),
        "the gradient of the step before is still in the sum: set w.grad to None first": (
            _step(lambda now, before, clip: _clipped(now + before, clip))
        ),
        "backward is missing: this is the gradient of the step before": (
            _step(lambda now, before, clip: _clipped(before, clip))
        ),
        "each number was clipped by itself, which turns the direction: clip the norm": (
            _step(lambda now, before, clip: now.clamp(-clip, clip))
        ),
        "a gradient below the limit stays as it is: only longer ones are made shorter": (
            _step(lambda now, before, clip: clip * now / now.norm())
        ),
        "clipped to 1: the limit is `clip`": _step(lambda now, before, clip: _clipped(now, 1.0)),
        "uphill: the step goes against the gradient": _step(lambda now, before, clip: -_clipped(now, clip)),
    },
    praise="backward first, then clip, then step",
    may_change=True,  # a step in place, as an optimiser's, is a step
)
