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
        "blocks repeat every n - 1 steps, not every n: a block of n nodes shares its last node with the next block": (
            lambda t, k, n: (t - k - 1) % n + 1
        ),
        "never 0: a block's first node is the last node of the block before, and reads that whole block": (
            lambda t, k, n: (t - k) % (n - 1)
        ),
        "the + 1 at the end of Eq. 1 is missing: a node reads 1 to n - 1 states": lambda t, k, n: (t - k - 1) % (n - 1),
        "off by one: add 1 after the remainder is taken, not before": lambda t, k, n: (t - k) % (n - 1) + 1,
        "these are the blocks of §3.1's text, which begin at 2 - k; those of Eq. 1 begin at k": (
            lambda t, k, n: (t + k - 3) % (n - 1) + 1
        ),
        "the same in all channels: k shifts the blocks": lambda t, k, n: (t - 1) % (n - 1) + 1,
        "the sign of k is wrong: a larger k shifts the blocks to the right": lambda t, k, n: (t + k - 1) % (n - 1) + 1,
        "you divided: mod is the remainder, the operator %": lambda t, k, n: (t - k - 1) // (n - 1) + 1,
        "this counts the steps that are left in the block: count those that are over": (
            lambda t, k, n: n - 1 - (t - k - 1) % (n - 1)
        ),
        "before a channel's first block t - k - 1 is negative: take the remainder of this number, not of its size": (
            lambda t, k, n: abs(t - k - 1) % (n - 1) + 1
        ),
        "Eq. 1 also counts the states before the start, which are zero: do not stop at t - 1": (
            lambda t, k, n: min((t - k - 1) % (n - 1) + 1, t - 1)
        ),
        "the number changes from step to step: this is the largest one": lambda t, k, n: n - 1,
    },
    praise="from 1 to n - 1, and at each step every number has its channel",
)

Input = Callable[[Tensor, int, Tensor], Tensor]


def _youngest_first(states: Tensor, m: int) -> Tensor:
    return states.flip(0)[:m]


def _mapped(W: Tensor, past: Tensor) -> Tensor:
    """Return W_1 times the first of these states, W_2 times the second and so on, (J, H)."""
    return (W[: len(past)] @ past[..., None])[..., 0]


def _input(
    past: Callable[[Tensor, int], Tensor] = _youngest_first, mapped: Callable[[Tensor, Tensor], Tensor] = _mapped
) -> Input:
    """Return a function that averages the mapped states over m of them, with one part changed."""
    return lambda states, m, W: mapped(W, past(states, m)).sum(0) / m


def _blocks() -> list[tuple[Tensor, int, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    sizes = ((5, 2, 3, 4), (6, 3, 4, 3), (2, 3, 3, 4), (4, 1, 3, 3))  # steps so far, m, n - 1, H
    return [(torch.randn(T, H, generator=draw), m, torch.randn(P, H, H, generator=draw)) for T, m, P, H in sizes]


block_input = Exercise(
    cases=_blocks,
    solution=_input(),
    bugs={
        "this is the sum: divide by m": lambda states, m, W: m * _input()(states, m, W),
        "the distances are reversed: W_1, which is W[0], belongs to the last state": _input(
            past=lambda states, m: states[-m:]
        ),
        "these are the first states of the sequence: take the last m": _input(
            past=lambda states, m: states[:m].flip(0)
        ),
        "one matrix for all distances: the state at distance j has its own, W_j": _input(
            mapped=lambda W, past: past @ W[0].T
        ),
        "the matrices W_j are missing: this is the mean of the states": _input(mapped=lambda W, past: past),
        "you divided by the number of matrices, n - 1: divide by m": lambda states, m, W: (
            _input()(states, m, W) * m / len(W)
        ),
        "you divided by the number of states that exist: those before the start are zero, and they count": (
            lambda states, m, W: _mapped(W, _youngest_first(states, m)).mean(0)
        ),
        "this reads n - 1 states at every step: read m": lambda states, m, W: _input()(states, len(W), W),
        "the matrices are transposed: W_j is on the left of the state": _input(
            mapped=lambda W, past: _mapped(W.mT, past)
        ),
        "only the last state is read: read m of them": lambda states, m, W: W[0] @ states[-1],
        "only the last state is read, and divided by m": lambda states, m, W: W[0] @ states[-1] / m,
        "off by one: the state at distance 1 is the last one": _input(past=lambda states, m: states[:-1].flip(0)[:m]),
        "the sum over the distances is missing": lambda states, m, W: _mapped(W, _youngest_first(states, m)) / m,
        "you summed the numbers of each state: sum over the distances": lambda states, m, W: (
            _mapped(W, _youngest_first(states, m)).sum(1) / m
        ),
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
        "the best channel plus one edge is too many where l = 1: any channel needs one edge for one step": (
            lambda length, n: -(-length // (n - 1)) + 1
        ),
        "this is the plain recurrent network, n = 2": lambda length, n: length,
        "blocks repeat every n - 1 steps, not every n": lambda length, n: (length - 2) // n + 2,
        "the whole blocks lie between the first edge and the last: divide l - 2 steps, not l": (
            lambda length, n: length // (n - 1) + 2
        ),
        "the first edge is missing: the worst step is the first one after a block's end": lambda length, n: (
            (length - 2) // (n - 1) + 1
        ),
        "edges are whole numbers: use //": lambda length, n: (length - 2) / (n - 1) + 2,
        "a block of n nodes is n - 1 steps long; and this is the best channel, not the worst": (
            lambda length, n: -(-length // n)
        ),
        "this goes step by step: a whole block is one edge": lambda length, n: max(1, length - n + 2),
    },
    praise="one edge into the block, one for each whole block, one for the rest",
)
