"""Checks of notebook 03: causal attention of one head, and the split of a width into heads.

Wang et al. (2019), R-Transformer, Eq. 4-6.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _triples() -> list[tuple[Tensor, Tensor, Tensor]]:
    """In the last case all scores are about -200, below what may be taken for minus infinity."""
    draw = torch.Generator().manual_seed(0)
    sizes = ((2, 6, 4), (3, 5, 9))
    (q, k, v), wide = ([torch.randn(*size, generator=draw) for _ in range(3)] for size in sizes)
    low_q, low_k = q.clone(), k.clone()
    low_q[..., 0], low_k[..., 0] = 20, -20
    return [(q, k, v), (wide[0], wide[1], wide[2]), (low_q, low_k, v)]


def _attend(
    scale: Callable[[int], float] = math.sqrt,
    axis: int = -1,
    seen: Callable[[Tensor], Tensor] = lambda ones: ones.tril(),
    hidden: float = -math.inf,
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Attention with one thing changed."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT / scale(q.shape[-1])
        mask = seen(torch.ones(scores.shape[-2:], dtype=torch.bool))
        return scores.masked_fill(~mask, hidden).softmax(axis) @ v

    return attend


def _masked_after(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1).tril() @ v


def _by_exponentials(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Eq. 5 to the letter: of low scores all exponentials are zero, and so is their sum."""
    powers = (q @ k.mT / math.sqrt(q.shape[-1])).exp().tril()
    return powers / powers.sum(-1, keepdim=True) @ v


def _by_root_of(axis: int) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda q, k, v: _attend(scale=lambda _: math.sqrt(q.shape[axis]))(q, k, v)


causal_attention = Exercise(
    cases=_triples,
    solution=_attend(),
    bugs={
        "future leak: hide the keys after t before the softmax": _attend(seen=lambda ones: ones),
        "mask inverted: your positions see the future and not the past": _attend(seen=lambda ones: ones.triu()),
        "mask inverted: your positions see the future only, and the last one nothing": _attend(
            seen=lambda ones: ones.triu(1)
        ),
        "a position sees itself, too: your first one sees nothing": _attend(seen=lambda ones: ones.tril(-1)),
        "the factor 1/√d_k is missing": _attend(scale=lambda K: 1),
        "divided by d_k, not by its root": _attend(scale=float),
        "divided by the root of B, not of d_k: `len` counts the first axis": _by_root_of(0),
        "divided by the root of T, not of d_k: the width is the last axis": _by_root_of(1),
        "query and key are swapped: a row of scores belongs to a query, a column to a key": lambda q, k, v: _attend()(
            k, q, v
        ),
        "exponentials of low scores are all 0, and 0 / 0 is no share: `softmax` subtracts the largest score first": (
            _by_exponentials
        ),
        "multiplied by √d_k where it should be divided": _attend(scale=lambda K: 1 / math.sqrt(K)),
        "softmax over the wrong axis: for each query, the weights of its keys sum to 1": _attend(axis=-2),
        "softmax over the wrong axis: it runs over the batch": _attend(axis=0),
        "a masked score of 0 still gets a weight, exp(0) = 1: use -inf": _attend(hidden=0.0),
        "real scores may lie below the number that you put in: use -inf": _attend(hidden=-100.0),
        "masked after the softmax, the weights no longer sum to 1: mask the scores": _masked_after,
    },
    praise="each position blends the values of its past by how well their keys match its query",
)


def _widths() -> list[tuple[Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    return [(torch.randn(2, 5, 12, generator=draw), 3), (torch.randn(1, 4, 8, generator=draw), 4)]


split_heads = Exercise(
    cases=_widths,
    solution=lambda x, H: x.unflatten(-1, (H, -1)).transpose(1, 2),
    bugs={
        "time and heads are mixed: split the last axis first, then swap two axes": lambda x, H: x.reshape(
            len(x), H, x.shape[1], -1
        ),
        "heads and time are still to be swapped: expected (B, H, T, K)": lambda x, H: x.unflatten(-1, (H, -1)),
        "a head takes neighbouring numbers, yours takes every H-th": lambda x, H: x.unflatten(-1, (-1, H)).permute(
            0, 3, 1, 2
        ),
        "time and width are swapped: expected (B, H, T, K)": lambda x, H: x.unflatten(-1, (H, -1)).permute(0, 2, 3, 1),
        "the heads stand before the batch: expected (B, H, T, K)": lambda x, H: x.unflatten(-1, (H, -1)).permute(
            2, 0, 1, 3
        ),
    },
    praise="each head has its own K numbers of every position",
)
