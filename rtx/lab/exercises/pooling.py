"""Exercises of notebook 09: attention over time, states replaced by their mean, and the largest possible share.

Raffel & Ellis (2015), Eq. 1 and §2.1.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _states() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    sizes = ((2, 5, 3), (3, 4, 6))
    return [(torch.randn(B, T, D, generator=draw), torch.randn(B, T, generator=draw)) for B, T, D in sizes]


def _pool(weights: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that sums the states over time with such weights, (B, T) from the scores (B, T)."""
    return lambda h, e: (weights(e)[..., None] * h).sum(1)


attention_pool = Exercise(
    cases=_states,
    solution=_pool(lambda e: e.softmax(1)),
    bugs={
        "the softmax is over the batch: the weights of each sequence must sum to 1": _pool(lambda e: e.softmax(0)),
        "the weights do not sum to 1: divide by the sum of the exponentials": _pool(torch.exp),
        "scores are not weights yet: apply a softmax first": _pool(lambda e: e),
        "e is the score already: do not apply tanh again": _pool(lambda e: e.tanh().softmax(1)),
        "this is a mean of weighted states: their sum is wanted, because the weights sum to 1": (
            lambda h, e: (e.softmax(1)[..., None] * h).mean(1)
        ),
    },
    praise="a weighted mean over time: one vector for each sequence, however long it is",
)


def _chosen() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    first = torch.tensor([[1, 0, 0, 1, 0], [0, 1, 1, 1, 0]]).bool()
    second = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 0]]).bool()
    return [(torch.randn(*chosen.shape, D, generator=draw) + 1, chosen) for chosen, D in ((first, 3), (second, 6))]


def _replaced(new: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that replaces the chosen states by new ones."""
    return lambda h, chosen: torch.where(chosen[..., None], new(h, chosen), h)


mean_ablated = Exercise(
    cases=_chosen,
    solution=_replaced(lambda h, chosen: h[chosen].mean(0)),
    bugs={
        "the chosen states are zero now: replace them by their mean": _replaced(lambda h, chosen: torch.zeros_like(h)),
        "this is the mean of all states: average the chosen ones only": _replaced(lambda h, chosen: h.mean((0, 1))),
        "each sequence has a mean of its own, so something of its noise stays: average over all sequences": _replaced(
            lambda h, chosen: ((h * chosen[..., None]).sum(1) / chosen.sum(1, keepdim=True))[:, None]
        ),
        "this is one number for all: a mean state has D numbers": _replaced(lambda h, chosen: h[chosen].mean()),
        "you divided by the number of all steps: divide by the number of chosen steps": _replaced(
            lambda h, chosen: (h * chosen[..., None]).mean((0, 1))
        ),
        "the wrong steps were replaced: the chosen ones stayed as they are": lambda h, chosen: torch.where(
            chosen[..., None], h, h[chosen].mean(0)
        ),
    },
    praise="the chosen steps still have a state, but it says nothing about their own numbers",
)


def _share(high: float, low: float) -> Callable[[int, int], float]:
    """Return a function for the share of the marked steps: their weight is high, that of all others is low."""
    return lambda T, marked: marked * high / (marked * high + (T - marked) * low)


largest_share = Exercise(
    cases=lambda: [(3, 1), (50, 2), (10_000, 2), (7, 3)],
    solution=_share(math.e, 1 / math.e),
    bugs={
        "scores go from -1 to 1: one of yours is 0": _share(math.e, 1),
        "the largest score is close to 1, not tanh(1)": _share(math.exp(math.tanh(1)), math.exp(-math.tanh(1))),
        "there are T - marked other steps, not T": lambda T, marked: marked * math.e / (marked * math.e + T / math.e),
        "this is the share of a single marked step: take all of them together": lambda T, marked: (
            math.e / (marked * math.e + (T - marked) / math.e)
        ),
        "only one step is marked in your formula: use `marked`": lambda T, marked: math.e / (math.e + (T - 1) / math.e),
    },
    praise="one weight is at most e² ≈ 7.4 times another one, whatever the training does",
)
