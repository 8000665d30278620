"""Exercises of notebook 09: attention over time, states replaced by their mean, and the largest possible share.

Raffel & Ellis (2015), Eq. 1 and §2.1.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import bug, exercise


@exercise(lambda: [(torch.randn(B, T, D), torch.randn(B, T)) for B, T, D in ((2, 5, 3), (3, 4, 6))])
@bug("the softmax is over the batch: the weights of each sequence must sum to 1", {"softmax(1)": "softmax(0)"})
@bug("the weights do not sum to 1: divide by the sum of the exponentials", {"softmax(1)": "exp()"})
@bug("scores are not weights yet: apply a softmax first", {".softmax(1)": ""})
@bug("this is a mean of weighted states: their sum is wanted, because the weights sum to 1", {".sum(1)": ".mean(1)"})
def attention_pool(h: Tensor, e: Tensor) -> Tensor:
    """The result is a weighted mean over time: one vector for each sequence, however long it is."""
    return (e.softmax(1)[..., None] * h).sum(1)


def _chosen() -> list[tuple[Tensor, Tensor]]:
    first = torch.tensor([[1, 0, 0, 1, 0], [0, 1, 1, 1, 0]]).bool()
    second = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 0]]).bool()
    return [(torch.randn(*chosen.shape, D) + 1, chosen) for chosen, D in ((first, 3), (second, 6))]


@exercise(_chosen)
@bug("the chosen states are zero now: replace them by their mean", {"h[chosen].mean(0)": "0.0"})
@bug("this is the mean of all states: average the chosen ones only", {"h[chosen].mean(0)": "h.mean((0, 1))"})
@bug("this is one number for all: a mean state has D numbers", {"mean(0)": "mean()"})
@bug(
    "this is a mean for each sequence: average the chosen states of all sequences",
    {"h[chosen].mean(0)": "(h * chosen[..., None]).sum(1, keepdim=True) / chosen.sum(1)[:, None, None]"},
)
@bug("the wrong steps were replaced: the chosen ones stayed as they are", {"(chosen[": "(~chosen["})
def mean_ablated(h: Tensor, chosen: Tensor) -> Tensor:
    """The chosen steps still have a state, but it says nothing about their own numbers."""
    return torch.where(chosen[..., None], h[chosen].mean(0), h)


@exercise(lambda: [(3, 1), (50, 2), (10_000, 2), (7, 3)])
@bug("scores go from -1 to 1: one of yours is 0", {"(T - marked) / math.e": "(T - marked)"})
@bug("there are T - marked other steps, not T", {"(T - marked)": "T"})
@bug("this is the share of a single marked step: take all of them together", {"return high": "return math.e"})
def largest_share(T: int, marked: int) -> float:
    """One weight is at most e² ≈ 7.4 times another one, whatever the training does."""
    high, low = marked * math.e, (T - marked) / math.e
    return high / (high + low)
