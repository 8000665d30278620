"""Checks of notebook 04: a sublayer's residual and norm; whether a model notices order.

Wang et al. (2019), R-Transformer, Eq. 8.
"""

from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from rtx.lab.exercises.exercise import Exercise

Function = Callable[[Tensor], Tensor]


def _norm(x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:])


def _mix(x: Tensor) -> Tensor:
    return torch.tanh(2 * x.roll(1, 1) - x.flip(2))


def _cases() -> list[tuple[Tensor, Function, Function]]:
    draw = torch.Generator().manual_seed(0)
    x = 3 * torch.randn(2, 5, 8, generator=draw) + 1
    # a LayerNorm hides a sum that is halved, or normalised twice: the last "norm" does not
    return [(x, _mix, _norm), (x, torch.cos, _norm), (x, torch.cos, torch.tanh)]


residual = Exercise(
    cases=_cases,
    solution=lambda x, sublayer, norm: norm(x + sublayer(x)),
    bugs={
        "this is pre-norm, the order of the authors' code; in Eq. 8 the norm comes last": (
            lambda x, sublayer, norm: x + sublayer(norm(x))
        ),
        "the residual is missing: add x to the sublayer's output": lambda x, sublayer, norm: norm(sublayer(x)),
        "you normalised the sublayer's output alone: first add x, then normalise the sum": (
            lambda x, sublayer, norm: x + norm(sublayer(x))
        ),
        "the norm is missing": lambda x, sublayer, norm: x + sublayer(x),
        "normalised twice: the sublayer reads x as it is": lambda x, sublayer, norm: norm(x + sublayer(norm(x))),
        "the sublayer is missing": lambda x, sublayer, norm: norm(x),
        "the sum is normalised twice: once is enough": lambda x, sublayer, norm: norm(norm(x + sublayer(x))),
        "the sum was divided by 2: Eq. 8 adds, and LayerNorm scales": lambda x, sublayer, norm: norm(
            (x + sublayer(x)) / 2
        ),
        "`norm` is not used: call the one that you are given": lambda x, sublayer, norm: _norm(x + sublayer(x)),
    },
    praise="what went in is added to what came out, and the sum is normalised",
)


def _swapped(x: Tensor) -> Tensor:
    """The first two positions of (B, T, D) change places."""
    return torch.cat([x[:, 1:2], x[:, :1], x[:, 2:]], 1)


def _moved(before: Tensor, after: Tensor) -> bool:
    return not torch.allclose(before, after, rtol=1e-4, atol=1e-5)


def _recurrent(x: Tensor) -> Tensor:
    states = [torch.zeros_like(x[:, 0])]
    for t in range(x.shape[1]):
        states.append(torch.tanh(0.9 * states[-1] + x[:, t]))
    return torch.stack(states[1:], 1)


def _sum(x: Tensor) -> Tensor:
    """Of the past, the nearest first, so that a swap of the first two is rounded otherwise."""
    return torch.stack([reduce(torch.add, x[:, : t + 1].flip(1).unbind(1)) for t in range(x.shape[1])], 1)


def _count(x: Tensor) -> Tensor:
    """How many positions each output sees, whatever stands there."""
    return torch.ones_like(x).cumsum(1)


def _largest(x: Tensor) -> Tensor:
    return x.cummax(1).values


def _doubled(x: Tensor) -> Tensor:
    """The second position stands in both of the first two places."""
    return torch.cat([x[:, 1:2], x[:, 1:]], 1)


def _order_cases() -> list[tuple[Function, Tensor]]:
    """Models, and inputs of which some tell a wrong swap from a wrong comparison."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4, 9, 8, generator=draw)
    alike = torch.randn(1, 7, 1, generator=draw).repeat(4, 1, 8)  # to swap sequences or numbers changes nothing
    twins = x.clone()
    twins[-1, 0] = twins[-1, 1]  # in the last sequence, nothing is swapped
    most = x.clone()
    most[[0, 2, 3], 0] = most[[0, 2, 3], 1]  # nor here, in all but the second
    return [
        (_sum, x),
        (_recurrent, x),
        (torch.tanh, x),
        (torch.tanh, alike),
        (torch.tanh, twins),
        (_recurrent, most),
        (_count, x),
        (_largest, x),
        (torch.zeros_like, x),
    ]


notices_order = Exercise(
    cases=_order_cases,
    solution=lambda model, x: _moved(model(x)[:, -1], model(_swapped(x))[:, -1]),
    bugs={
        "you compared all outputs: those at the swapped places see other inputs in any model; take the last": (
            lambda model, x: _moved(model(x), model(_swapped(x)))
        ),
        "this is the last sequence: the first axis counts sequences, the last position is [:, -1]": (
            lambda model, x: _moved(model(x)[-1], model(_swapped(x))[-1])
        ),
        "you looked at one sequence only: any of the batch may notice": (
            lambda model, x: _moved(model(x)[0, -1], model(_swapped(x))[0, -1])
        ),
        "the last input was moved, too: its own output changes with it in any model": (
            lambda model, x: _moved(model(x)[:, -1], model(x.flip(1))[:, -1])
        ),
        "the wrong way round: True is for a model that notices": (
            lambda model, x: not _moved(model(x)[:, -1], model(_swapped(x))[:, -1])
        ),
        "rounding is no order: sums in another order differ in their last digits; use torch.allclose": (
            lambda model, x: not torch.equal(model(x)[:, -1], model(_swapped(x))[:, -1])
        ),
        "positions were lost: behind the two that change places all others stay": (
            lambda model, x: _moved(model(x)[:, -1], model(_swapped(x)[:, :4])[:, -1])
        ),
        "the first position was overwritten before it was copied: both places hold the second one": (
            lambda model, x: _moved(model(x)[:, -1], model(_doubled(x))[:, -1])
        ),
        "sequences or numbers changed places: positions are counted by the second axis": (
            lambda model, x: _moved(model(x)[:, -1], model(x[[1, 0, *range(2, len(x))]])[:, -1])
        ),
        "nothing was swapped": lambda model, x: _moved(model(x)[:, -1], model(x)[:, -1]),
    },
    praise="a sum does not notice, a recurrence does",
)
