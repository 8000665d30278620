"""Exercises of notebook 08: how many states a node of MC-RNN reads, what it reads, and the longest way back.

Xu et al. (2019), MC-RNN, Eq. 1, Eq. 2 and §5.2.
"""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import bug, exercise


@exercise(lambda: [(t, k, n) for n in (2, 3, 4, 6) for k in range(1, n) for t in range(1, 14)])
@bug("blocks repeat every n - 1 steps, not every n: two blocks share a node", {"% (n - 1)": "% n"})
@bug("never 0: the first node of a block reads the whole block before it", lambda t, k, n: (t - k) % (n - 1))
@bug("the + 1 at the end of Eq. 1 is missing: a node reads 1 to n - 1 states", {" + 1": ""})
@bug("off by one: add 1 after the remainder is taken, not before", {"(t - k - 1)": "(t - k)"})
def in_degree(t: int, k: int, n: int) -> int:
    """The number goes from 1 to n - 1, and at each step every number has its channel."""
    return (t - k - 1) % (n - 1) + 1


def _blocks() -> list[tuple[Tensor, int, Tensor]]:
    sizes = ((5, 2, 3, 4), (6, 3, 4, 3), (2, 3, 3, 4), (4, 1, 3, 3))  # steps so far, m, n - 1, H
    return [(torch.randn(T, H), m, torch.randn(P, H, H)) for T, m, P, H in sizes]


@exercise(_blocks)
@bug("this is the sum: divide by m", {" / m": ""})
@bug("the distances are reversed: W_1 belongs to the last state", {"states.flip(0)[:m]": "states[-m:]"})
@bug("one matrix for all distances: distance j has its own, W_j", {"W[: len(past)]": "W[:1]"})
@bug("states before the start are zero, and they count: divide by m", {"/ m": "/ len(past)"})
def block_input(states: Tensor, m: int, W: Tensor) -> Tensor:
    """Near and far states of a block are one edge away, each through a matrix of its own."""
    past = states.flip(0)[:m]  # the newest state first
    return (W[: len(past)] @ past[..., None])[..., 0].sum(0) / m


@exercise(lambda: [(length, n) for n in (2, 3, 4, 5, 8) for length in range(1, 20)])
@bug("the paper's bound says 1 at n = 4 and l = 2, but one channel needs 2", {"length - 2": "length", "+ 2": "+ 1"})
@bug("this is the best channel, whose blocks end where you start", lambda length, n: -(-length // (n - 1)))
@bug("the first edge is missing: the worst step is the first one after a block's end", {"+ 2": "+ 1"})
def longest_path(length: int, n: int) -> int:
    """The path has one edge into the block, one for each whole block, and one for the rest."""
    return (length - 2) // (n - 1) + 2  # 1 at length 1: -1 // (n - 1) is -1
