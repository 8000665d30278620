"""Checks of notebook 12: a softmax in pieces, and a gradient by hand.

Rabe & Staats (2021), Self-attention Does Not Need O(n²) Memory; Elman (1990) for the cell.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _halves() -> list[tuple[Tensor, ...]]:
    """Scores and values of two halves: ordinary; all about 100; far apart, where either half has the larger ones."""
    draw = torch.Generator().manual_seed(0)

    def half(scale: float, keys: int) -> tuple[Tensor, Tensor]:
        return scale * torch.randn(3, keys, generator=draw), torch.randn(keys, 2, generator=draw)

    (scores_a, values_a), (scores_b, values_b) = half(1.0, 4), half(1.0, 3)
    one, other = half(100.0, 2), half(100.0, 5)
    return [
        (scores_a, values_a, scores_b, values_b),
        (scores_a + 100, values_a, scores_b + 100, values_b),
        (*one, *other),
        (*other, *one),
    ]


def _in_halves(scores_a: Tensor, values_a: Tensor, scores_b: Tensor, values_b: Tensor) -> Tensor:
    top = torch.maximum(scores_a.amax(-1, True), scores_b.amax(-1, True))
    a, b = (scores_a - top).exp(), (scores_b - top).exp()
    return (a @ values_a + b @ values_b) / (a.sum(-1, True) + b.sum(-1, True))


def _without_top(scores_a: Tensor, v_a: Tensor, scores_b: Tensor, v_b: Tensor) -> Tensor:
    a, b = scores_a.exp(), scores_b.exp()
    return (a @ v_a + b @ v_b) / (a.sum(-1, True) + b.sum(-1, True))


def _undivided(scores_a: Tensor, v_a: Tensor, scores_b: Tensor, v_b: Tensor) -> Tensor:
    top = torch.maximum(scores_a.amax(-1, True), scores_b.amax(-1, True))
    return (scores_a - top).exp() @ v_a + (scores_b - top).exp() @ v_b


def _less(top: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """As it should be, with another number subtracted from the scores."""
    return lambda scores_a, v_a, scores_b, v_b: _without_top(
        scores_a - top(scores_a, scores_b), v_a, scores_b - top(scores_a, scores_b), v_b
    )


def _own_tops(scores_a: Tensor, v_a: Tensor, scores_b: Tensor, v_b: Tensor) -> Tensor:
    a, b = ((s - s.amax(-1, True)).exp() for s in (scores_a, scores_b))
    return (a @ v_a + b @ v_b) / (a.sum(-1, True) + b.sum(-1, True))


def _two_softmaxes(scores_a: Tensor, v_a: Tensor, scores_b: Tensor, v_b: Tensor) -> Tensor:
    return scores_a.softmax(-1) @ v_a + scores_b.softmax(-1) @ v_b


softmax_in_halves = Exercise(
    cases=_halves,
    solution=_in_halves,
    bugs={
        "each half has a softmax of its own, so the weights sum to 2": _two_softmaxes,
        "the halves count alike: a half with larger scores must weigh more": lambda *halves: (
            _two_softmaxes(*halves) / 2
        ),
        "exp overflows where scores are large: subtract the largest score first": _without_top,
        "you subtract the largest score of one half: the other's may be far larger, and overflow": _less(
            lambda a, b: a.amax(-1, True)
        ),
        "you subtract the largest score of the second half: the first's may be far larger, and overflow": _less(
            lambda a, b: b.amax(-1, True)
        ),
        "the largest score of all rows: in a row far below it all exponentials are 0; take each row's own": _less(
            lambda a, b: torch.maximum(a.amax(), b.amax())
        ),
        "the sum that you divide by is missing": _undivided,
        "each half subtracts its own largest score: both need the same one": _own_tops,
        "only the first half is in the sum that you divide by": lambda sa, va, sb, vb: (
            _in_halves(sa, va, sb, vb) * (1 + (sb.logsumexp(-1, True) - sa.logsumexp(-1, True)).exp())
        ),
    },
    praise="no row of weights need ever be whole, and the answer is the same",
)


def _cell() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [(torch.randn(n, 3, generator=draw), torch.randn(n, 3, generator=draw).tanh()) for n in (5, 2)]


back_through_tanh = Exercise(
    cases=_cell,
    solution=lambda d_h, h: d_h * (1 - h * h),
    bugs={
        "h is already tanh(a): its derivative is 1 - h², no further tanh": lambda d_h, h: d_h * (1 - h.tanh() ** 2),
        "this is the derivative of the sigmoid, h (1 - h)": lambda d_h, h: d_h * h * (1 - h),
        "the derivative must be multiplied by d_h, which comes from above": lambda d_h, h: 1 - h * h,
        "the sign is wrong: 1 - h², not h² - 1": lambda d_h, h: d_h * (h * h - 1),
    },
    praise="h is enough: what went into the tanh need not be kept",
)
