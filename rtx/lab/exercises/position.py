"""Checks of notebook 05: the rows of a table of clipped distances, and Transformer-XL's score.

Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _distances(T: int) -> Tensor:
    """s - t for each query t (row) and key s."""
    t = torch.arange(T)
    return t - t[:, None]


clipped_rows = Exercise(
    cases=lambda: [(6, 2), (4, 5), (3, 1)],
    solution=lambda T, k: _distances(T).clamp(-k, k) + k,
    bugs={
        "row and column are swapped: a row is a query, a column a key": lambda T, k: _distances(T).T.clamp(-k, k) + k,
        "not clipped: a distance beyond k has no row": lambda T, k: _distances(T) + k,
        "a row of a table cannot be negative: add k": lambda T, k: _distances(T).clamp(-k, k),
        "off by one: distance 0 belongs to row k": lambda T, k: _distances(T).clamp(-k, k) + k + 1,
        "clip to -k … k; you left out k itself": lambda T, k: _distances(T).clamp(1 - k, k - 1) + k,
        "the sign is lost: before and after share a row": lambda T, k: _distances(T).abs().clamp(max=k) + k,
    },
    praise="2 k + 1 rows serve sequences of any length, and the two outer ones serve all that is far",
)


def _vectors() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(K, generator=draw) for _ in range(5)) for K in (4, 9)]


def _score(
    terms: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor], scale: Callable[[int], float] = math.sqrt
) -> Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]:
    return lambda q, k, r, u, v: terms(q, k, r, u, v) / scale(len(q))


xl_score = Exercise(
    cases=_vectors,
    solution=_score(lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r),
    bugs={
        "u and v are swapped: u weighs contents, v distances": _score(lambda q, k, r, u, v: (q + v) @ k + (q + u) @ r),
        "only the second half is scaled: brackets around the sum": (
            lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r / math.sqrt(len(q))
        ),
        "only the last term is scaled: brackets around the sum": (
            lambda q, k, r, u, v: q @ k + q @ r + u @ k + v @ r / math.sqrt(len(q))
        ),
        "divided by d_k, not by its root": _score(lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r, scale=float),
        "the factor 1/√d_k is missing": _score(lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r, scale=lambda K: 1),
        "the biases u and v are missing": _score(lambda q, k, r, u, v: q @ k + q @ r),
        "the query is missing in the second half: (b) is q · r": _score(lambda q, k, r, u, v: (q + u) @ k + v @ r),
        "one of the four terms is there twice, or too much": _score(
            lambda q, k, r, u, v: (q + u) @ (k + r) + (q + v) @ r
        ),
        "only contents and their bias: the distance is missing": _score(lambda q, k, r, u, v: (q + u) @ k),
        "this is the score of a vector that is key and distance at once: it has u · r and v · k in it": _score(
            lambda q, k, r, u, v: (q + u + v) @ (k + r)
        ),
    },
    praise="two products hold all four terms",
)
