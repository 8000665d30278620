"""Exercises of notebook 08: how many states a node of MC-RNN reads, what it reads, and the longest way back.

Xu et al. (2019), MC-RNN, Eq. 1, Eq. 2 and §5.2.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

in_degree = Exercise(
    cases=lambda: [(t, k, n) for n in (2, 3, 4, 6) for k in range(1, n) for t in range(1, 14)],
    solution=lambda t, k, n: (t - k - 1) % (n - 1) + 1,
    bugs={
        "blocks repeat every n - 1 steps, not every n: two blocks share a node": lambda t, k, n: (t - k - 1) % n + 1,
        "never 0: the first node of a block reads the whole block before it": lambda t, k, n: (t - k) % (n - 1),
        "the + 1 at the end of Eq. 1 is missing: a node reads 1 to n - 1 states": lambda t, k, n: (t - k - 1) % (n - 1),
        "off by one: add 1 after the remainder is taken, not before": lambda t, k, n: (t - k) % (n - 1) + 1,
    },
    praise="from 1 to n - 1, and at each step every number has its channel",
)


def _average(
    newest: Callable[[Tensor, int], Tensor] = lambda states, m: states.flip(0)[:m],
    matrices: Callable[[Tensor], Tensor] = lambda W: W,
    divisor: Callable[[int, int, int], int] = lambda m, existing, matrices: m,
) -> Callable[[Tensor, int, Tensor], Tensor]:
    """Return a function that averages the mapped states over m of them, with one thing changed."""

    def average(states: Tensor, m: int, W: Tensor) -> Tensor:
        past = newest(states, m)[..., None]  # (J, H, 1): W_1 maps the first of these states, W_2 the second
        return (matrices(W)[: len(past)] @ past)[..., 0].sum(0) / divisor(m, len(past), len(W))

    return average


def _blocks() -> list[tuple[Tensor, int, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    sizes = ((5, 2, 3, 4), (6, 3, 4, 3), (2, 3, 3, 4), (4, 1, 3, 3))  # steps so far, m, n - 1, H
    return [(torch.randn(T, H, generator=draw), m, torch.randn(P, H, H, generator=draw)) for T, m, P, H in sizes]


block_input = Exercise(
    cases=_blocks,
    solution=_average(),
    bugs={
        "this is the sum: divide by m": _average(divisor=lambda m, existing, matrices: 1),
        "the distances are reversed: W_1 belongs to the last state": _average(newest=lambda states, m: states[-m:]),
        "one matrix for all distances: distance j has its own, W_j": _average(matrices=lambda W: W[:1].expand_as(W)),
        "you divided by n - 1: divide by m": _average(divisor=lambda m, existing, matrices: matrices),
        "you divided by the number of states that exist: those before the start are zero, and they count": _average(
            divisor=lambda m, existing, matrices: existing
        ),
        "the matrices are transposed: W_j is on the left of the state": _average(matrices=lambda W: W.mT),
    },
    praise="near and far states of a block are one edge away, each through a matrix of its own",
)

longest_path = Exercise(
    cases=lambda: [(length, n) for n in (2, 3, 4, 5, 8) for length in range(1, 20)],
    solution=lambda length, n: (length - 2) // (n - 1) + 2,  # 1 at length 1: -1 // (n - 1) is -1
    bugs={
        "this is the paper's bound; at n = 4 and l = 2 it says 1, but one channel needs 2": (
            lambda length, n: length // (n - 1) + 1
        ),
        "this is the best channel, whose blocks end where you start": lambda length, n: -(-length // (n - 1)),
        "blocks repeat every n - 1 steps, not every n": lambda length, n: (length - 2) // n + 2,
        "the first edge is missing: the worst step is the first one after a block's end": lambda length, n: (
            (length - 2) // (n - 1) + 1
        ),
        "edges are whole numbers: use //": lambda length, n: (length - 2) / (n - 1) + 2,
    },
    praise="one edge into the block, one for each whole block, one for the rest",
)
