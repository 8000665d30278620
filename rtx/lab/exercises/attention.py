"""Exercises of notebook 03: causal attention of one head, and an induction head made by hand.

Wang et al. (2019), R-Transformer, Eq. 4-6; Olsson et al. (2022), In-context Learning and Induction Heads.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from rtx.lab.exercises.exercise import bug, exercise


def _triples() -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return queries, keys and values. Values may have another width. In the last case all scores are far below 0."""
    q, k, v = torch.randn(2, 6, 4), torch.randn(2, 6, 4), torch.randn(2, 6, 3)
    return [(q, k, v), (20 * q.abs(), -20 * k.abs(), v)]


@exercise(_triples)
@bug("future leak: hide the keys after t before the softmax", {"hidden.softmax": "scores.softmax"})
@bug("a position sees itself, too: your first one sees nothing", {"triu(1)": "triu()"})
@bug("the factor 1/√d_k is missing", {" / math.sqrt(q.shape[-1])": ""})
@bug("a masked score of 0 still gets a weight, exp(0) = 1: use -inf", {"-math.inf": "0.0"})
@bug("mask the scores: masked weights no longer sum to 1", {"hidden.softmax(-1)": "scores.softmax(-1).tril()"})
@bug("the mask is inverted: your positions see only the future", {"triu(1)": "tril()"})
@bug("0 · -inf is NaN: use `masked_fill`", {"scores.masked_fill(future, -math.inf)": "scores + future * -math.inf"})
@bug("divided by d_k, not by its root", {"math.sqrt(q.shape[-1])": "q.shape[-1]"})
@bug("softmax over the wrong axis: for each query, the weights of its keys sum to 1", {"softmax(-1)": "softmax(-2)"})
def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each position mixes the values of its past by how well their keys match its query."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:]).triu(1).bool()
    hidden = scores.masked_fill(future, -math.inf)
    return hidden.softmax(-1) @ v


def _texts() -> list[tuple[Tensor]]:
    """Return symbols with repetitions: at a distance, side by side, of the last one, and new ones."""
    texts = [[[1, 2, 3, 1, 4, 1, 2, 2], [5, 5, 5, 0, 3, 0, 1, 3]], [[2, 0, 1, 0, 3, 2]], [[0, 1, 2, 3]]]
    return [(torch.tensor(text),) for text in texts]


@exercise(_texts)
@bug("you compare the query with the key's own symbol: compare it with the one before", {"(before[": "(x["})
@bug("this is the last occurrence: the position after it is wanted", {"(before[": "(x[", "tril()": "tril(-1)"})
@bug("this is the first occurrence: the last one counts", {"(found * torch.arange(1, T + 1))": "found.int()"})
@bug("future leak: a key after t has a weight", {".tril()": ""})
@bug("if a symbol is new, its row is zero: it must attend to itself", {".float()": ".float() * match.any(-1, True)"})
def induction(x: Tensor) -> Tensor:
    """Each position attends to what followed the last occurrence of its symbol."""
    T = x.shape[1]
    before = pad(x, (1, 0), value=-1)[:, :-1]
    match = (before[:, None] == x[..., None]).tril()  # (B, query, key)
    found = match | (torch.eye(T).bool() & ~match.any(-1, keepdim=True))
    newest = (found * torch.arange(1, T + 1)).argmax(-1)
    return one_hot(newest, T).float()
