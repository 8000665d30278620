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


def _weighted(h: Tensor, e: Tensor) -> Tensor:
    return e.softmax(1)[..., None] * h


attention_pool = Exercise(
    cases=_states,
    solution=_pool(lambda e: e.softmax(1)),
    bugs={
        "this is the plain mean: the scores are not used": lambda h, e: h.mean(1),
        "the softmax is over the batch: the weights of each sequence must sum to 1": _pool(lambda e: e.softmax(0)),
        "the weights do not sum to 1: divide by the sum of the exponentials": _pool(torch.exp),
        "scores are not weights yet: apply a softmax first": _pool(lambda e: e),
        "you divided the scores by their sum, so a weight can be negative: take exponentials first": _pool(
            lambda e: e / e.sum(1, keepdim=True)
        ),
        "a sigmoid treats each step alone: the weights of a sequence must sum to 1": _pool(torch.sigmoid),
        "e is the score already: do not apply tanh again": _pool(lambda e: e.tanh().softmax(1)),
        "the sign of the scores is wrong: a larger score means a larger weight": _pool(lambda e: (-e).softmax(1)),
        "this is only the step with the largest score: all steps count, by their weights": lambda h, e: h[
            torch.arange(len(h)), e.argmax(1)
        ],
        "the states are weighted, but not summed over time": _weighted,
        "this is a mean of weighted states: the weights sum to 1 already, so take the sum": (
            lambda h, e: _weighted(h, e).mean(1)
        ),
        "you summed over the batch: sum over time, axis 1": lambda h, e: _weighted(h, e).sum(0),
        "you summed the numbers of each state: sum over time, axis 1": lambda h, e: _weighted(h, e).sum(2),
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


def _mean_of_chosen(h: Tensor, chosen: Tensor) -> Tensor:
    return h[chosen].mean(0)


def _share_of_chosen(h: Tensor, chosen: Tensor, axis: int) -> Tensor:
    """Return the mean of the chosen states over one axis, which stays with size 1."""
    return (h * chosen[..., None]).sum(axis, keepdim=True) / chosen.sum(axis, keepdim=True)[..., None]


mean_ablated = Exercise(
    cases=_chosen,
    solution=_replaced(_mean_of_chosen),
    bugs={
        "the chosen states are zero now: replace them by their mean": _replaced(lambda h, chosen: torch.zeros_like(h)),
        "this is the mean of all states: average the chosen ones only": _replaced(lambda h, chosen: h.mean((0, 1))),
        "this is the mean of the states that are not chosen": _replaced(lambda h, chosen: h[~chosen].mean(0)),
        "each sequence has a mean of its own, so something of its noise stays: average over all sequences": _replaced(
            lambda h, chosen: _share_of_chosen(h, chosen, 1)
        ),
        "each step has a mean of its own: average over all chosen steps": _replaced(
            lambda h, chosen: _share_of_chosen(h, chosen, 0)
        ),
        "this is one number for all: a mean state has D numbers": _replaced(lambda h, chosen: h[chosen].mean()),
        "each state became the mean of its own numbers: average over steps, not over numbers": _replaced(
            lambda h, chosen: h.mean(-1, keepdim=True).expand_as(h)
        ),
        "you divided by the number of all steps: divide by the number of chosen steps": _replaced(
            lambda h, chosen: (h * chosen[..., None]).mean((0, 1))
        ),
        "this is the sum of the chosen states: divide by their number": _replaced(lambda h, chosen: h[chosen].sum(0)),
        "the mean was added to the chosen states: put it in their place": _replaced(
            lambda h, chosen: h + _mean_of_chosen(h, chosen)
        ),
        "the mean was subtracted from the chosen states: put it in their place": _replaced(
            lambda h, chosen: h - _mean_of_chosen(h, chosen)
        ),
        "the wrong steps were replaced, by their own mean: `chosen` marks the steps to replace": (
            lambda h, chosen: _replaced(_mean_of_chosen)(h, ~chosen)
        ),
        "the wrong steps were replaced: the chosen ones stayed as they are": lambda h, chosen: torch.where(
            chosen[..., None], h, _mean_of_chosen(h, chosen)
        ),
        "all steps were replaced: the steps that are not chosen stay as they are": (
            lambda h, chosen: _mean_of_chosen(h, chosen).expand_as(h)
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
        "this is an even share: it ignores the scores": _share(1, 1),
        "scores go from -1 to 1: one of yours is 0": _share(math.e, 1),
        "this is the smallest share: give the marked steps the largest score": _share(1 / math.e, math.e),
        "a softmax takes the exponentials of the scores": _share(1, -1),
        "a tanh comes as close to 1 as you like: its largest value is not tanh(1)": _share(
            math.exp(math.tanh(1)), math.exp(-math.tanh(1))
        ),
        "the sum below needs all steps: the marked ones are missing": lambda T, marked: (
            marked * math.e / ((T - marked) / math.e)
        ),
        "there are T - marked other steps, not T": lambda T, marked: marked * math.e / (marked * math.e + T / math.e),
        "this is the share of a single marked step: take all of them together": lambda T, marked: (
            math.e / (marked * math.e + (T - marked) / math.e)
        ),
        "only one step is marked in your formula: use `marked`": lambda T, marked: math.e / (math.e + (T - 1) / math.e),
        "this is in percent: a share is between 0 and 1": lambda T, marked: 100 * _share(math.e, 1 / math.e)(T, marked),
        "e² is the largest ratio of two weights; the share also depends on the sum of all weights": lambda T, marked: (
            math.e**2 * marked / T
        ),
    },
    praise="one weight is at most e² ≈ 7.4 times another one, whatever the training does",
)
