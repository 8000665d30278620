"""Checks of notebook 02: windows cut from a sequence, and how far a stack of LocalRNNs reaches.

Wang et al. (2019), R-Transformer, §3.1.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import Exercise


def _cut(x: Tensor, window: int, before: int, after: int = 0) -> Tensor:
    """Every window of x (B, T, D), after zero vectors were put before and after it: (B, number, M, D)."""
    return pad(x, (0, 0, before, after)).unfold(1, window, 1).mT


def _sequences() -> list[tuple[Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    # with M = 1 nothing stands before the sequence, and a slice [:-0] is empty
    return [(torch.randn(B, T, D, generator=draw), M) for B, T, D, M in ((2, 6, 3, 4), (1, 5, 2, 5), (2, 4, 3, 1))]


windows = Exercise(
    cases=_sequences,
    solution=lambda x, window: _cut(x, window, before=window - 1),
    bugs={
        "only T - M + 1 windows: M - 1 zero vectors belong before the sequence": (lambda x, M: _cut(x, M, before=0)),
        "T + 1 windows: M - 1 zero vectors stand before the sequence, not M": lambda x, M: _cut(x, M, before=M),
        "the zeros stand behind the sequence, so your windows read the future": (
            lambda x, M: _cut(x, M, before=0, after=M - 1)
        ),
        "windows centred on t read the future: all zeros belong before the sequence": (
            lambda x, M: _cut(x, M, before=M // 2, after=M - 1 - M // 2)
        ),
        "off by one: your windows end at t - 1, the present position is missing": (
            lambda x, M: _cut(x[:, :-1], M, before=M)
        ),
        "rolled: the first windows hold the sequence's end, so they read the future": (
            lambda x, M: torch.stack([x.roll(M - 1 - j, 1) for j in range(M)], 2)
        ),
        "before the sequence stand zero vectors; yours repeats its first position": (
            lambda x, M: _cut(torch.cat([x[:, :1]] * (M - 1) + [x], 1), M, before=0)
        ),
        "off by one: your windows hold M + 1 positions": (lambda x, M: _cut(x, M + 1, before=M)),
        "reversed order: a window starts with its oldest position and ends with x_t": (
            lambda x, M: _cut(x, M, before=M - 1).flip(2)
        ),
        "the last two axes are swapped: expected (B, T, M, D)": (lambda x, M: _cut(x, M, before=M - 1).mT),
        "positions and numbers are mixed: a reshape does not swap two axes, `.mT` does": (
            lambda x, M: _cut(x, M, before=M - 1).mT.reshape(*x.shape[:2], M, x.shape[2])
        ),
    },
    praise="one window per position, each ends at its own position, and none reads the future",
)

stacked_reach = Exercise(
    cases=lambda: [(1, 4), (2, 4), (3, 7), (4, 1)],
    solution=lambda layers, window: layers * (window - 1) + 1,
    bugs={
        "a layer adds M - 1 new positions, not M: it shares one with the layer below": lambda L, M: L * M,
        "reaches of layers add up, they do not multiply": lambda L, M: M**L,
        "the present position itself is missing": lambda L, M: L * (M - 1),
        "this is the reach of one layer": lambda L, M: M,
    },
    praise="each layer adds M - 1 positions",
)
