"""Exercises of notebook 03: causal attention of one head, and an induction head made by hand.

Wang et al. (2019), R-Transformer, Eq. 4-6; Olsson et al. (2022), In-context Learning and Induction Heads.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from rtx.lab.exercises.exercise import Exercise

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def _triples() -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return queries, keys and values. Values may have another width. In the last case all scores are about -200."""
    draw = torch.Generator().manual_seed(0)
    sizes = (((2, 6, 4), (2, 6, 3)), ((3, 5, 9), (3, 5, 9)))
    (q, k, v), wide = ([torch.randn(*size, generator=draw) for size in (key, key, value)] for key, value in sizes)
    low_q, low_k = q.clone(), k.clone()
    low_q[..., 0], low_k[..., 0] = 20, -20
    return [(q, k, v), (wide[0], wide[1], wide[2]), (low_q, low_k, v)]


def _weights(
    scale: Callable[[int], float] = math.sqrt,
    axis: int = -1,
    seen: Callable[[Tensor], Tensor] = lambda ones: ones.tril(),
    hidden: float = -math.inf,
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of queries and keys that gives the attention weights, with one thing changed."""

    def weights(q: Tensor, k: Tensor) -> Tensor:
        scores = q @ k.mT / scale(q.shape[-1])
        mask = seen(torch.ones(scores.shape[-2:], dtype=torch.bool))
        return scores.masked_fill(~mask, hidden).softmax(axis)

    return weights


def _attend(
    scale: Callable[[int], float] = math.sqrt,
    axis: int = -1,
    seen: Callable[[Tensor], Tensor] = lambda ones: ones.tril(),
    hidden: float = -math.inf,
) -> Attention:
    """Return attention with one thing changed."""
    return lambda q, k, v: _weights(scale, axis, seen, hidden)(q, k) @ v


def _masked_after(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1).tril() @ v


def _by_exponentials(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute Eq. 5 to the letter. If all scores are low, all exponentials are zero, and so is their sum."""
    powers = (q @ k.mT / math.sqrt(q.shape[-1])).exp().tril()
    return powers / powers.sum(-1, keepdim=True) @ v


def _by_root_of(axis: int) -> Attention:
    return lambda q, k, v: _attend(scale=lambda _: math.sqrt(q.shape[axis]))(q, k, v)


causal_attention = Exercise(
    cases=_triples,
    solution=_attend(),
    bugs={
        "future leak: hide the keys after t before the softmax": _attend(seen=lambda ones: ones),
        "the mask is inverted: your positions see the future and not the past": _attend(seen=lambda ones: ones.triu()),
        "the mask is inverted: your positions see only the future, and the last one sees nothing": _attend(
            seen=lambda ones: ones.triu(1)
        ),
        "off by one: position t sees position t + 1, too": _attend(seen=lambda ones: ones.tril(1)),
        "a position sees itself, too: your first one sees nothing": _attend(seen=lambda ones: ones.tril(-1)),
        "the factor 1/√d_k is missing": _attend(scale=lambda K: 1),
        "divided by d_k, not by its root": _attend(scale=float),
        "divided by the root of B, not of d_k: `len` counts the first axis": _by_root_of(0),
        "divided by the root of T, not of d_k: the width is the last axis": _by_root_of(1),
        "divided by the root of the values' width: d_k is the width of queries and keys": (
            lambda q, k, v: _attend(scale=lambda _: math.sqrt(v.shape[-1]))(q, k, v)
        ),
        "query and key are swapped: a row of scores belongs to a query, a column to a key": lambda q, k, v: _attend()(
            k, q, v
        ),
        "all exponentials of low scores are 0, and 0 / 0 is no weight: `softmax` subtracts the largest score first": (
            _by_exponentials
        ),
        "multiplied by √d_k where it should be divided": _attend(scale=lambda K: 1 / math.sqrt(K)),
        "divided by √d_k after the softmax: the scores need this factor": lambda q, k, v: (
            _attend(scale=lambda K: 1)(q, k, v) / math.sqrt(q.shape[-1])
        ),
        "softmax over the wrong axis: for each query, the weights of its keys sum to 1": _attend(axis=-2),
        "softmax over the wrong axis: it runs over the batch": _attend(axis=0),
        "a masked score of 0 still gets a weight, exp(0) = 1: use -inf": _attend(hidden=0.0),
        "a masked score of -1 still gets a weight, exp(-1) = 0.37: use -inf": _attend(hidden=-1.0),
        "a masked score of -10 still gets a weight if the other scores are low: use -inf": _attend(hidden=-10.0),
        "a masked score of -100 still gets a weight if the other scores are lower: use -inf": _attend(hidden=-100.0),
        "masked after the softmax, the weights no longer sum to 1: mask the scores": _masked_after,
        "the softmax is missing: these are scores times values": lambda q, k, v: (
            (q @ k.mT / math.sqrt(q.shape[-1])).tril() @ v
        ),
        "these are the weights: multiply them with the values": lambda q, k, v: _weights()(q, k),
        "this is the mean of the past: the weights must depend on queries and keys": lambda q, k, v: _attend()(
            0 * q, k, v
        ),
    },
    praise="each position mixes the values of its past by how well their keys match its query",
)


def _texts() -> list[tuple[Tensor]]:
    """Return symbols with repetitions: at a distance, side by side, of the last one, and new ones."""
    texts = [[[1, 2, 3, 1, 4, 1, 2, 2], [5, 5, 5, 0, 3, 0, 1, 3]], [[2, 0, 1, 0, 3, 2]], [[0, 1, 2, 3]]]
    return [(torch.tensor(text),) for text in texts]


def _earlier(x: Tensor, shift: int = 1) -> Tensor:
    """Return whether key s comes `shift` positions after a symbol like the query's, (B, T, T); no key is later."""
    before = pad(x, (shift, 0), value=-1)[:, : x.shape[1]]
    return (before[:, None] == x[..., None]).tril()


def _choose(match: Tensor, last: bool = True) -> Tensor:
    """Return weight 1 for the last (or the first) match of each query. Without a match, the query attends to itself."""
    T = match.shape[-1]
    places = torch.arange(T)
    scores = match * (places + 1 if last else T - places)
    found = torch.where(match.any(-1), scores.argmax(-1), places)
    return one_hot(found, T).float()


def _induction(x: Tensor) -> Tensor:
    return _choose(_earlier(x))


def _if_new(other: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return an induction head whose weights are others where a symbol is new."""
    return lambda x: torch.where(_earlier(x).any(-1, keepdim=True), _induction(x), other(_induction(x)))


def _shared(x: Tensor) -> Tensor:
    match = _earlier(x).float()
    return torch.where(match.any(-1, keepdim=True), match / match.sum(-1, keepdim=True).clamp(min=1), _induction(x))


def _with_future(x: Tensor) -> Tensor:
    before = pad(x, (1, 0), value=-1)[:, :-1]
    return _choose(before[:, None] == x[..., None])


def _strict(x: Tensor) -> Tensor:
    """Hide the position itself, which follows the last occurrence if a symbol comes twice in a row."""
    return _choose(_earlier(x).tril(-1))


def _rolled(x: Tensor) -> Tensor:
    return _choose((x.roll(1, 1)[:, None] == x[..., None]).tril())


induction = Exercise(
    cases=_texts,
    solution=lambda x: _induction(x),
    bugs={
        "you compare the query with each key's own symbol, so it finds itself: compare it with the symbol before": (
            lambda x: _choose(_earlier(x, 0))
        ),
        "this is the last occurrence itself: the position after it is wanted": lambda x: _choose(
            _earlier(x, 0).tril(-1)
        ),
        "this is the first occurrence: the last one counts": lambda x: _choose(_earlier(x), last=False),
        "off by one: you are two positions after the last occurrence": lambda x: _choose(_earlier(x, 2)),
        "several occurrences share the weight: only the last one counts": _shared,
        "future leak: a key after t has a weight": _with_future,
        "the position t itself may be the answer, if its symbol comes twice in a row": _strict,
        "the symbol before the first position is not the last symbol of the text: `roll` goes round": _rolled,
        "rows and columns are swapped: a row is a query, a column is a key": lambda x: _induction(x).mT,
        "if a symbol is new, its row is zero: it must attend to itself": _if_new(torch.zeros_like),
        "if a symbol is new, it attends to the first position: it must attend to itself": _if_new(
            lambda weights: one_hot(torch.zeros_like(weights[..., 0]).long(), weights.shape[-1]).float()
        ),
        "if a symbol is new, it attends to all positions so far: it must attend to itself": _if_new(
            lambda weights: torch.ones_like(weights).tril() / torch.ones_like(weights).tril().sum(-1, keepdim=True)
        ),
        "every match has a weight of 1: the weights of a row must sum to 1": lambda x: _earlier(x).float(),
        "these are the copied symbols: return the weights, (B, T, T)": lambda x: x.gather(1, _induction(x).argmax(-1)),
        "these are positions: return weights, (B, T, T)": lambda x: _induction(x).argmax(-1),
        "every sequence has the weights of the first one": lambda x: _induction(x[:1]).expand(len(x), -1, -1),
    },
    praise="each position attends to what followed the last occurrence of its symbol",
)
