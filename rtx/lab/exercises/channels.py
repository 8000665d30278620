"""Checks of notebook 08: which states a node of MC-RNN reads, and how many edges lead back over a distance.

Xu et al. (2019), MC-RNN, Eq. 1, Eq. 5 and §5.2.
"""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

in_degree = Exercise(
    cases=lambda: [(t, k, n) for n in (2, 3, 4, 6) for k in range(1, n) for t in range(1, 14)],
    solution=lambda t, k, n: (t - k - 1) % (n - 1) + 1,
    bugs={
        "the blocks have n nodes, but neighbours share one: they repeat every n - 1 steps, not every n": (
            lambda t, k, n: (t - k - 1) % n + 1
        ),
        "never 0: a block's first node is the last one of the block before, and reads all of that": (
            lambda t, k, n: (t - k) % (n - 1)
        ),
        "Eq. 1's last + 1 is missing: a node reads 1 to n - 1 others": lambda t, k, n: (t - k - 1) % (n - 1),
        "off by one: 1 is added after the remainder is taken, not before": lambda t, k, n: (t - k) % (n - 1) + 1,
        "these are the blocks of §3.1's text, which begin at 2 - k; Eq. 1's begin at k": (
            lambda t, k, n: (t + k - 3) % (n - 1) + 1
        ),
        "the same in all channels: k shifts the blocks": lambda t, k, n: (t - 1) % (n - 1) + 1,
    },
    praise="from 1 to n - 1, and at each step every number has its channel",
)


def _scores() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    sizes = ((2, 5, 3, 4), (3, 4, 5, 2))
    return [(torch.randn(B, T, C, generator=draw), torch.randn(B, T, C, H, generator=draw)) for B, T, C, H in sizes]


join_channels = Exercise(
    cases=_scores,
    solution=lambda e, h: (e.softmax(-1)[..., None] * h).sum(2),
    bugs={
        "the softmax runs over time: a step would see scores of later ones": lambda e, h: (
            e.softmax(1)[..., None] * h
        ).sum(2),
        "the softmax runs over the batch: one sequence has nothing to do with another": lambda e, h: (
            e.softmax(0)[..., None] * h
        ).sum(2),
        "scores are no weights yet: first a softmax over the channels": lambda e, h: (e[..., None] * h).sum(2),
        "averaged where it should be summed: the weights sum to 1 already": lambda e, h: (
            e.softmax(-1)[..., None] * h
        ).mean(2),
        "this is the plain mean of the channels: the scores are not used": lambda e, h: h.mean(2),
        "the weights do not sum to 1: divide by the sum of the exponentials": lambda e, h: (e.exp()[..., None] * h).sum(
            2
        ),
        "weighted, but not summed over the channels": lambda e, h: e.softmax(-1)[..., None] * h,
        "the sum runs over time: h_t has one vector a step": lambda e, h: (e.softmax(-1)[..., None] * h).sum(1),
    },
    praise="at each step the channels share one unit of attention",
)

longest_path = Exercise(
    cases=lambda: [(length, n) for n in (2, 3, 4, 5, 8) for length in range(1, 20)],
    solution=lambda length, n: (length - 2) // (n - 1) + 2,  # 1 at length 1: -1 // (n - 1) is -1
    bugs={
        "this is the paper's bound; at n = 4 and l = 2 it says 1, where one channel needs 2": (
            lambda length, n: length // (n - 1) + 1
        ),
        "this is the luckiest channel, whose blocks end where you start": lambda length, n: -(-length // (n - 1)),
        "this is the plain recurrent network, n = 2": lambda length, n: length,
        "blocks repeat every n - 1 steps, not every n": lambda length, n: (length - 2) // n + 2,
        "the whole blocks lie between the first edge and the last: l - 2 steps, not l": (
            lambda length, n: length // (n - 1) + 2
        ),
    },
    praise="one edge into the block, one for each whole block, one for the rest",
)
