"""Exercises of notebook 05: scores with clipped distances, Transformer-XL's score, and rotations.

Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3; Su et al. (2021), RoFormer, §3.2.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _shaw(
    rows: Callable[[Tensor, int], Tensor] = lambda distance, k: distance.clamp(-k, k) + k,
    total: Callable[[Tensor, Tensor, int], Tensor] = lambda content, place, K: (content + place) / math.sqrt(K),
) -> Callable[[Tensor, Tensor, Tensor, int], Tensor]:
    """Return a function that computes Shaw's scores, with one thing changed."""

    def scores(q: Tensor, k: Tensor, table: Tensor, clip: int) -> Tensor:
        t = torch.arange(len(q))
        vectors = table[rows(t - t[:, None], clip)]  # (T, T, K): a row for each query, a column for each key
        return total(q @ k.T, torch.einsum("td,tsd->ts", q, vectors), q.shape[-1])

    return scores


def _shaw_cases() -> list[tuple[Tensor, Tensor, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    cases = []
    for T, K, clip in ((6, 4, 2), (4, 9, 3), (5, 6, 1)):
        q, k, table = (torch.randn(rows, K, generator=draw) for rows in (T, T, 2 * clip + 1))
        cases.append((q, k, table, clip))
    return cases


shaw_scores = Exercise(
    cases=_shaw_cases,
    solution=_shaw(),
    bugs={
        "the sign of the distance is wrong: a key in the past has the negative distance s - t": _shaw(
            lambda distance, k: (-distance).clamp(-k, k) + k
        ),
        "add clip: a negative index counts from the end": _shaw(lambda distance, k: distance.clamp(-k, k)),
        "the sign of the distance is lost: a key in the past and one in the future have different vectors": _shaw(
            lambda distance, k: distance.abs().clamp(max=k) + k
        ),
        "the factor 1/√K is missing": _shaw(total=lambda content, place, K: content + place),
        "divided by K, not by its root": _shaw(total=lambda content, place, K: (content + place) / K),
        "only the second product is scaled: put brackets around the sum": _shaw(
            total=lambda content, place, K: content + place / math.sqrt(K)
        ),
        "rows and columns are swapped: a row is a query, a column a key": lambda *given: _shaw()(*given).T,
    },
    praise="every key has a score, however far away it is; 2 clip + 1 vectors serve any length",
)


def _vectors() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(K, generator=draw) for _ in range(5)) for K in (4, 9)]


Vectors = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def _score(
    terms: Vectors = lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r, divisor: Callable[[int], float] = math.sqrt
) -> Vectors:
    """Return Transformer-XL's score with one thing changed."""
    return lambda q, k, r, u, v: terms(q, k, r, u, v) / divisor(len(q))


xl_score = Exercise(
    cases=_vectors,
    solution=_score(),
    bugs={
        "u and v are swapped: u meets k, v meets r": _score(lambda q, k, r, u, v: (q + v) @ k + (q + u) @ r),
        "only the second half is scaled: put brackets around the sum": (
            lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r / math.sqrt(len(q))
        ),
        "divided by K, not by its root": _score(divisor=float),
        "the factor 1/√K is missing": _score(divisor=lambda K: 1),
        "the vectors u and v are missing: these are (a) and (b) only": _score(lambda q, k, r, u, v: q @ k + q @ r),
        "u · r and v · k were added: u meets only k, v only r": _score(lambda q, k, r, u, v: (q + u + v) @ (k + r)),
    },
    praise="two products contain all four terms",
)


Pair = tuple[Tensor, Tensor]


def _turn(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    return a * cos - b * sin, a * sin + b * cos


def _a_too_early(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    a = a * cos - b * sin
    return a, a * sin + b * cos


def _rotation(
    pairs: Callable[[Tensor], Pair] = lambda x: (x[:, ::2], x[:, 1::2]),
    turn: Callable[[Tensor, Tensor, Tensor, Tensor], Pair] = _turn,
    joined: Callable[[Pair], Tensor] = lambda turned: torch.stack(turned, -1).flatten(1),
    rates: Callable[[int], Tensor] = lambda K: 10_000.0 ** (-torch.arange(0, K, 2) / K),
    first: Callable[[int], int] = lambda start: start,
) -> Callable[..., Tensor]:
    """Return a function that rotates the pairs of each row, with one thing changed."""

    def rotation(x: Tensor, start: int = 0) -> Tensor:
        angles = (first(start) + torch.arange(len(x)))[:, None] * rates(x.shape[-1])
        return joined(turn(*pairs(x), angles.cos(), angles.sin()))

    return rotation


def _in_halves(numbers: Pair) -> Tensor:
    return torch.cat(numbers, -1)


rotated = Exercise(
    cases=lambda: [
        (torch.randn(T, K, generator=torch.Generator().manual_seed(K)), start) for T, K, start in ((4, 6, 0), (3, 4, 5))
    ],
    solution=_rotation(),
    bugs={
        "you rotated the other way: the minus belongs to the even number": _rotation(
            turn=lambda a, b, cos, sin: _turn(a, b, cos, -sin)
        ),
        "the even number was replaced too early: the odd one needs its old value": _rotation(turn=_a_too_early),
        "you paired number i with number i + K/2, as some libraries do; here 2i and 2i + 1 are a pair": _rotation(
            pairs=lambda x: (x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]), joined=_in_halves
        ),
        "first all even and then all odd numbers: put them back in turn": _rotation(joined=_in_halves),
        "start is not used": _rotation(first=lambda start: 0),
        "the exponent lacks its factor 2: pair i has the rate 10000^(-2i/K)": _rotation(
            rates=lambda K: 10_000.0 ** (-torch.arange(K // 2) / K)
        ),
    },
    praise="each pair keeps its length and turns by an angle that grows with the position",
)
