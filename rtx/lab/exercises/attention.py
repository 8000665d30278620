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


def _attend(
    scale: Callable[[int], float] = math.sqrt,
    axis: int = -1,
    seen: Callable[[Tensor], Tensor] = torch.tril,
    hidden: float = -math.inf,
) -> Attention:
    """Return attention with one thing changed."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT / scale(q.shape[-1])
        mask = seen(torch.ones(scores.shape[-2:], dtype=torch.bool))
        return scores.masked_fill(~mask, hidden).softmax(axis) @ v

    return attend


def _masked_after(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1).tril() @ v


def _by_exponentials(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute Eq. 5 to the letter. If all scores are low, all exponentials are zero, and so is their sum."""
    powers = (q @ k.mT / math.sqrt(q.shape[-1])).exp().tril()
    return powers / powers.sum(-1, keepdim=True) @ v


causal_attention = Exercise(
    cases=_triples,
    solution=_attend(),
    bugs={
        "future leak: hide the keys after t before the softmax": _attend(seen=lambda ones: ones),
        "the mask is inverted: your positions see only the future": _attend(seen=lambda ones: ones.triu(1)),
        "off by one: position t sees position t + 1, too": _attend(seen=lambda ones: ones.tril(1)),
        "a position sees itself, too: your first one sees nothing": _attend(seen=lambda ones: ones.tril(-1)),
        "the factor 1/√d_k is missing": _attend(scale=lambda K: 1),
        "divided by d_k, not by its root": _attend(scale=float),
        "all exponentials of low scores are 0, and 0 / 0 is no weight: use `softmax`": _by_exponentials,
        "softmax over the wrong axis: for each query, the weights of its keys sum to 1": _attend(axis=-2),
        "a masked score of 0 still gets a weight, exp(0) = 1: use -inf": _attend(hidden=0.0),
        "a masked score of -10 still gets a weight if the other scores are low: use -inf": _attend(hidden=-10.0),
        "masked after the softmax, the weights no longer sum to 1: mask the scores": _masked_after,
    },
    praise="each position mixes the values of its past by how well their keys match its query",
)


def _texts() -> list[tuple[Tensor]]:
    """Return symbols with repetitions: at a distance, side by side, of the last one, and new ones."""
    texts = [[[1, 2, 3, 1, 4, 1, 2, 2], [5, 5, 5, 0, 3, 0, 1, 3]], [[2, 0, 1, 0, 3, 2]], [[0, 1, 2, 3]]]
    return [(torch.tensor(text),) for text in texts]


def _symbol_before(x: Tensor) -> Tensor:
    return pad(x, (1, 0), value=-1)[:, :-1]


def _newest(match: Tensor) -> Tensor:
    """Return the place of each query's last match, or 0."""
    return (match * torch.arange(1, match.shape[-1] + 1)).argmax(-1)


def _choose(match: Tensor, place: Callable[[Tensor], Tensor] = _newest) -> Tensor:
    """Return weight 1 for one match of each query. Without a match, the query attends to itself."""
    T = match.shape[-1]
    return one_hot(torch.where(match.any(-1), place(match), torch.arange(T)), T).float()


def _shared(match: Tensor) -> Tensor:
    found = match | (torch.eye(match.shape[-1]).bool() & ~match.any(-1, keepdim=True))
    return found / found.sum(-1, keepdim=True)


def _head(
    before: Callable[[Tensor], Tensor] = _symbol_before,
    seen: Callable[[Tensor], Tensor] = torch.tril,
    choose: Callable[[Tensor], Tensor] = _choose,
) -> Callable[[Tensor], Tensor]:
    """Return an induction head with one thing changed. A key matches a query if the symbol before it is the query's."""
    return lambda x: choose(seen(before(x)[:, None] == x[..., None]))


induction = Exercise(
    cases=_texts,
    solution=_head(),
    bugs={
        "you compare the query with the key's own symbol: compare it with the one before": _head(before=lambda x: x),
        "this is the last occurrence itself: the position after it is wanted": _head(
            before=lambda x: x, seen=lambda match: match.tril(-1)
        ),
        "this is the first occurrence: the last one counts": _head(
            choose=lambda match: _choose(match, lambda match: match.int().argmax(-1))
        ),
        "several occurrences share the weight: only the last one counts": _head(choose=_shared),
        "future leak: a key after t has a weight": _head(seen=lambda match: match),
        "nothing stands before the first position, but `roll` goes round": _head(before=lambda x: x.roll(1, 1)),
        "if a symbol is new, its row is zero: it must attend to itself": _head(
            choose=lambda match: _choose(match) * match.any(-1, keepdim=True)
        ),
        "if a symbol is new, it attends to the first position: it must attend to itself": _head(
            choose=lambda match: one_hot(_newest(match), match.shape[-1]).float()
        ),
    },
    praise="each position attends to what followed the last occurrence of its symbol",
)
