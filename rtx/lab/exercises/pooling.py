"""Checks of notebook 09: attention as a pooling over time, and how much of it one step can have.

Raffel & Ellis (2015), Eq. 1 and §2.1.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _states() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    sizes = ((2, 5, 3), (3, 4, 6))
    return [(torch.randn(B, T, D, generator=draw), torch.randn(B, T, generator=draw)) for B, T, D in sizes]


attention_pool = Exercise(
    cases=_states,
    solution=lambda h, e: (e.softmax(1)[..., None] * h).sum(1),
    bugs={
        "this is the plain mean: the scores are not used": lambda h, e: h.mean(1),
        "the softmax is over the batch, not over time": lambda h, e: (e.softmax(0)[..., None] * h).sum(1),
        "the weights do not sum to 1: divide by the sum of the exponentials": lambda h, e: (e.exp()[..., None] * h).sum(
            1
        ),
        "weighted, but not summed over time": lambda h, e: e.softmax(1)[..., None] * h,
        "averaged where it should be summed: the weights sum to 1 already": lambda h, e: (
            e.softmax(1)[..., None] * h
        ).mean(1),
    },
    praise="a weighted mean over time, one vector for each sequence, however long",
)

largest_share = Exercise(
    cases=lambda: [(1,), (2,), (50,), (10_000,)],
    solution=lambda T: math.e / (math.e + (T - 1) / math.e),
    bugs={
        "this is an even share": lambda T: 1 / T,
        "the others need not have a score of 0: they may go down to -1": lambda T: math.e / (math.e + T - 1),
        "the step itself stands in the sum, too": lambda T: math.e / (max(T - 1, 1e-9) / math.e),
        "there are T - 1 other steps, not T": lambda T: math.e / (math.e + T / math.e),
    },
    praise="e² : 1 is the most that two steps can differ by, whatever the weights",
)
