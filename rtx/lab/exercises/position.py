"""Exercises of notebook 05: scores with clipped distances, Transformer-XL's score, and rotations.

Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3; Su et al. (2021), RoFormer, §3.2.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Scores = Callable[[Tensor, Tensor, Tensor, int], Tensor]
Rows = Callable[[Tensor, int], Tensor]


def _distances(T: int) -> Tensor:
    """Return s - t for each query t (row) and key s (column)."""
    t = torch.arange(T)
    return t - t[:, None]


def _clipped(distance: Tensor, k: int) -> Tensor:
    return distance.clamp(-k, k) + k


def _content(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.T


def _by_distance(q: Tensor, vectors: Tensor) -> Tensor:
    """Return the product of each query with the vector of its distance to each key."""
    return torch.einsum("td,tsd->ts", q, vectors)


def _shaw(
    rows: Rows = _clipped,
    join: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda q, k, a: _content(q, k) + _by_distance(q, a),
    scale: Callable[[Tensor, int], Tensor] = lambda scores, K: scores / math.sqrt(K),
) -> Scores:
    """Return a function that computes Shaw's scores, with one part changed."""

    def scores(q: Tensor, k: Tensor, table: Tensor, clip: int) -> Tensor:
        vectors = table[rows(_distances(len(q)), clip)]  # (T, T, K)
        return scale(join(q, k, vectors), q.shape[-1])

    return scores


def _shaw_cases() -> list[tuple[Tensor, Tensor, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    cases = []
    for T, K, clip in ((6, 4, 2), (4, 9, 3), (5, 6, 1)):
        q, k, table = (torch.randn(rows, K, generator=draw) for rows in (T, T, 2 * clip + 1))
        cases.append((q, k, table, clip))
    return cases


def _far(T: int, clip: int) -> Tensor:
    return _distances(T).abs() > clip


_right = _shaw()
shaw_scores = Exercise(
    cases=_shaw_cases,
    solution=_right,
    bugs={
        "the sign of the distance is wrong: a key in the past has the negative distance s - t": _shaw(
            lambda distance, k: (-distance).clamp(-k, k) + k
        ),
        "add clip to the distance: a negative index counts from the end of the table": _shaw(
            lambda distance, k: distance.clamp(-k, k)
        ),
        "the sign of the distance is lost: a key in the past and one in the future have different vectors": _shaw(
            lambda distance, k: distance.abs().clamp(max=k) + k
        ),
        "the sign of the distance is lost, and clip was not added": _shaw(
            lambda distance, k: distance.abs().clamp(max=k)
        ),
        "you clipped to clip - 1: the distances -clip and clip have vectors, too": _shaw(
            lambda distance, k: distance.clamp(1 - k, k - 1) + k
        ),
        "keys beyond clip were left out: clipping changes their vector, it does not hide them": (
            lambda q, k, table, clip: _right(q, k, table, clip).masked_fill(_far(len(q), clip), -math.inf)
        ),
        "beyond clip you added no vector: those distances use the last one": (
            lambda q, k, table, clip: torch.where(
                _far(len(q), clip), q @ k.T / math.sqrt(q.shape[-1]), _right(q, k, table, clip)
            )
        ),
        "the factor 1/√K is missing": _shaw(scale=lambda scores, K: scores),
        "divided by K, not by its root": _shaw(scale=lambda scores, K: scores / K),
        "divided by the root of T: K is the last axis of q": (
            lambda q, k, table, clip: _right(q, k, table, clip) * math.sqrt(q.shape[-1] / len(q))
        ),
        "only the second product is scaled: put brackets around the sum": (
            lambda q, k, table, clip: q @ k.T + _right(q, 0 * k, table, clip)
        ),
        "only the first product is scaled: put brackets around the sum": (
            lambda q, k, table, clip: _right(q, k, 0 * table, clip) + _right(q, 0 * k, table, clip) * q.shape[-1] ** 0.5
        ),
        "the content is missing: add the vector to the key": _shaw(join=lambda q, k, a: _by_distance(q, a)),
        "the distances are missing": _shaw(join=lambda q, k, a: _content(q, k)),
        "the vector of the distance meets the key: it must meet the query": _shaw(
            join=lambda q, k, a: _content(q, k) + torch.einsum("sd,tsd->ts", k, a)
        ),
        "rows and columns are swapped: a row is a query, a column a key": (
            lambda q, k, table, clip: _right(q, k, table, clip).T
        ),
        "these are weights: return the scores before the softmax": (
            lambda q, k, table, clip: _right(q, k, table, clip).softmax(-1)
        ),
        "later keys were hidden: the causal mask comes afterwards, here all scores are wanted": (
            lambda q, k, table, clip: _right(q, k, table, clip).masked_fill(_distances(len(q)) > 0, -math.inf)
        ),
    },
    praise="every key has a score, however far away it is; 2 clip + 1 vectors serve any length",
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
        "u and v are swapped: u meets the key, v meets the distance": _score(
            lambda q, k, r, u, v: (q + v) @ k + (q + u) @ r
        ),
        "only the second half is scaled: put brackets around the sum": (
            lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r / math.sqrt(len(q))
        ),
        "only the last term is scaled: put brackets around the sum": (
            lambda q, k, r, u, v: q @ k + q @ r + u @ k + v @ r / math.sqrt(len(q))
        ),
        "divided by K, not by its root": _score(lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r, scale=float),
        "the factor 1/√K is missing": _score(lambda q, k, r, u, v: (q + u) @ k + (q + v) @ r, scale=lambda K: 1),
        "the vectors u and v are missing: these are (a) and (b) only": _score(lambda q, k, r, u, v: q @ k + q @ r),
        "the term (c) is missing: u · k": _score(lambda q, k, r, u, v: q @ k + (q + v) @ r),
        "the term (d) is missing: v · r": _score(lambda q, k, r, u, v: (q + u) @ k + q @ r),
        "the term (b) is missing: q · r": _score(lambda q, k, r, u, v: (q + u) @ k + v @ r),
        "the term (a) is missing: q · k": _score(lambda q, k, r, u, v: u @ k + (q + v) @ r),
        "the query is missing: these are (c) and (d) only": _score(lambda q, k, r, u, v: u @ k + v @ r),
        "u · r was added: u meets the key only": _score(lambda q, k, r, u, v: (q + u) @ (k + r) + v @ r),
        "v · k was added: v meets the distance only": _score(lambda q, k, r, u, v: (q + v) @ (k + r) + u @ k),
        "one of the four terms is there twice, or a term was added": _score(
            lambda q, k, r, u, v: (q + u) @ (k + r) + (q + v) @ r
        ),
        "only contents and their bias: the distance is missing": _score(lambda q, k, r, u, v: (q + u) @ k),
        "only distances and their bias: the content is missing": _score(lambda q, k, r, u, v: (q + v) @ r),
        "u · r and v · k were added: u meets the key only, v meets the distance only": _score(
            lambda q, k, r, u, v: (q + u + v) @ (k + r)
        ),
    },
    praise="two products contain all four terms",
)

Turn = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def _turn(even: Tensor, odd: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return even * cos - odd * sin, even * sin + odd * cos


def _rates(K: int) -> Tensor:
    return 10_000.0 ** (-torch.arange(0, K, 2) / K)


def _rotation(
    turn: Turn = _turn, rates: Callable[[int], Tensor] = _rates, first: Callable[[int], int] = lambda start: start
) -> Callable[..., Tensor]:
    """Return a function that rotates the pairs of each row, with one part changed."""

    def rotation(x: Tensor, start: int = 0) -> Tensor:
        angles = (first(start) + torch.arange(len(x)))[:, None] * rates(x.shape[-1])
        return torch.stack(turn(x[:, ::2], x[:, 1::2], angles.cos(), angles.sin()), -1).flatten(1)

    return rotation


def _in_halves(x: Tensor, start: int = 0) -> Tensor:
    """Rotate number i with number i + K / 2, as some libraries do."""
    half = x.shape[-1] // 2
    angles = (start + torch.arange(len(x)))[:, None] * _rates(x.shape[-1])
    return torch.cat(_turn(x[:, :half], x[:, half:], angles.cos(), angles.sin()), -1)


def _waves_added(x: Tensor, start: int = 0) -> Tensor:
    angles = (start + torch.arange(len(x)))[:, None] * _rates(x.shape[-1])
    return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def _one_after_the_other(even: Tensor, odd: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    even = even * cos - odd * sin
    return even, even * sin + odd * cos


_rotated = _rotation()
rotated = Exercise(
    cases=lambda: [
        (torch.randn(T, K, generator=torch.Generator().manual_seed(K)), start) for T, K, start in ((4, 6, 0), (3, 4, 5))
    ],
    solution=_rotated,
    bugs={
        "you rotated the other way: the minus belongs to the even number": _rotation(
            lambda even, odd, cos, sin: _turn(even, odd, cos, -sin)
        ),
        "cos and sin are swapped": _rotation(lambda even, odd, cos, sin: _turn(even, odd, sin, cos)),
        "the minus is missing: without it, lengths change": _rotation(
            lambda even, odd, cos, sin: (even * cos + odd * sin, even * sin + odd * cos)
        ),
        "this is a reflection: the minus belongs to the even number only": _rotation(
            lambda even, odd, cos, sin: (even * cos + odd * sin, even * sin - odd * cos)
        ),
        "the even number was replaced too early: the odd one needs its old value": _rotation(_one_after_the_other),
        "you paired number i with number i + K/2, as some libraries do; here 2i and 2i + 1 are a pair": _in_halves,
        "first all even and then all odd numbers: put them back in turn": (
            lambda x, start=0: torch.cat([_rotated(x, start)[:, ::2], _rotated(x, start)[:, 1::2]], -1)
        ),
        "start is not used": _rotation(first=lambda start: 0),
        "you counted positions from start + 1: the first row has position start": _rotation(
            first=lambda start: start + 1
        ),
        "all pairs turn equally fast: pair i has the rate 10000^(-2i/K)": _rotation(rates=lambda K: torch.ones(K // 2)),
        "the exponent lacks its factor 2: pair i has the rate 10000^(-2i/K)": _rotation(
            rates=lambda K: 10_000.0 ** (-torch.arange(K // 2) / K)
        ),
        "the exponent has the wrong sign: later pairs turn more slowly": _rotation(
            rates=lambda K: 10_000.0 ** (torch.arange(0, K, 2) / K)
        ),
        "the rates are in reverse order: the first pair turns fastest": _rotation(rates=lambda K: _rates(K).flip(0)),
        "the angle must be in radians, without a factor 2π": _rotation(rates=lambda K: 2 * math.pi * _rates(K)),
        "these are sinusoids added to x: rotate the pairs instead": _waves_added,
        "you only scaled by the cosine: a rotation mixes the two numbers of a pair": _rotation(
            lambda even, odd, cos, sin: (even * cos, odd * cos)
        ),
    },
    praise="each pair keeps its length and turns by an angle that grows with the position",
)
