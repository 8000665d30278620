"""Checks of notebook 07: a causal dilated convolution, and how far a stack of them sees.

Bai, Kolter & Koltun (2018), §3.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import Exercise


def _sequences() -> list[tuple[Tensor, Tensor, int]]:
    """x (T,), w (k,) with w[0] for the present, and the dilation; a symmetric w would hide a flip."""
    draw = torch.Generator().manual_seed(0)
    sizes = ((12, 3, 1), (12, 3, 2), (10, 4, 3), (4, 3, 3))  # the last kernel reaches further than its sequence
    return [(torch.randn(T, generator=draw), torch.randn(k, generator=draw), d) for T, k, d in sizes]


def _shifted(x: Tensor, steps: int) -> Tensor:
    """x delayed by so many steps, zeros before it; ahead of time if negative."""
    return pad(x, (steps, 0))[: len(x)] if steps >= 0 else pad(x, (0, -steps))[-steps:]


def _sum(x: Tensor, w: Tensor, delays: list[int]) -> Tensor:
    return torch.stack([w_i * _shifted(x, delay) for w_i, delay in zip(w, delays, strict=True)]).sum(0)


dilated_convolution = Exercise(
    cases=_sequences,
    solution=lambda x, w, d: _sum(x, w, [d * i for i in range(len(w))]),
    bugs={
        "this reads the future: x at t + d i, where it should be t - d i": (
            lambda x, w, d: _sum(x, w, [-d * i for i in range(len(w))])
        ),
        "centred on t, half of the kernel reads the future": (
            lambda x, w, d: _sum(x, w, [d * (i - len(w) // 2) for i in range(len(w))])
        ),
        "the dilation is not used: neighbours are d steps apart": lambda x, w, d: _sum(x, w, list(range(len(w)))),
        "the kernel is flipped: w[0] belongs to the present": (
            lambda x, w, d: _sum(x, w.flip(0), [d * i for i in range(len(w))])
        ),
        "off by one: w[0] meets x at t - d, the present is missing": (
            lambda x, w, d: _sum(x, w, [d * (i + 1) for i in range(len(w))])
        ),
        "before the start stand zeros; a negative index in Python counts from the end": (
            lambda x, w, d: sum(w[i] * x.roll(d * i) for i in range(len(w)))
        ),
    },
    praise="a weight for each delay, and nothing but the past",
)

tcn_reach = Exercise(
    cases=lambda: [(1, 2), (2, 3), (4, 6), (8, 7)],
    solution=lambda L, k: 1 + 2 * (k - 1) * (2**L - 1),
    bugs={
        "a block has two convolutions, both of its dilation": lambda L, k: 1 + (k - 1) * (2**L - 1),
        "the dilations double from block to block: 1 + 2 + 4 + … = 2^L - 1": lambda L, k: 1 + 2 * (k - 1) * L,
        "the sum 1 + 2 + … + 2^(L-1) is 2^L - 1": lambda L, k: 1 + 2 * (k - 1) * 2**L,
        "a kernel of k has k - 1 steps between its ends": lambda L, k: 1 + 2 * k * (2**L - 1),
        "the present position itself is missing": lambda L, k: 2 * (k - 1) * (2**L - 1),
    },
    praise="the depth adds up, the dilation doubles",
)
