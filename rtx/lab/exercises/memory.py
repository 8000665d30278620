"""Checks of notebook 06: how far Transformer-XL sees, and which positions are the next segment's memory.

Dai et al. (2019), Transformer-XL, §3.2.
"""

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

xl_reach = Exercise(
    cases=lambda: [(1, 8), (2, 8), (3, 5), (12, 128)],
    solution=lambda L, S: (L + 1) * S,
    bugs={
        "the segment itself is missing: each of L layers adds one segment to it": lambda L, S: L * S,
        "this is the reach of one layer: its segment and the one before": lambda L, S: 2 * S,
        "a layer adds one segment, it does not double the reach": lambda L, S: 2**L * S,
        "one segment too much": lambda L, S: (L + 2) * S,
        "this is a segment alone, without a memory": lambda L, S: S,
    },
    praise="each layer reads the memory of the one below, so each reaches a segment further",
)


def _memories() -> list[tuple[Tensor, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    memory, segment = (torch.randn(n, 3, generator=draw) for n in (4, 3))
    first = torch.zeros(0, 5), torch.randn(3, 5, generator=draw)  # before it, there is no memory
    return [*((memory, segment, M) for M in (4, 2, 7, 9, 0)), (*first, 2), (*first, 4)]


def _last(both: Tensor, M: int) -> Tensor:
    return both[max(0, len(both) - M) :]


next_memory = Exercise(
    cases=_memories,
    solution=lambda memory, segment, M: _last(torch.cat([memory, segment]), M),
    bugs={
        "a slice [-0:] is everything, and should be nothing where M = 0": lambda memory, segment, M: torch.cat(
            [memory, segment]
        )[-M:],
        "a negative start counts from the end: where M is more than there is, keep all": (
            lambda memory, segment, M: torch.cat([memory, segment])[len(memory) + len(segment) - M :]
        ),
        "with M larger than the segment, the end of the old memory stays; and a slice [-0:] is everything": (
            lambda memory, segment, M: segment[-M:]
        ),
        "you keep the oldest: the newest are worth more": lambda memory, segment, M: torch.cat([memory, segment])[:M],
        "with M larger than the segment, the end of the old memory stays": lambda memory, segment, M: _last(segment, M),
        "the memory grows without end: keep M positions": lambda memory, segment, M: torch.cat([memory, segment]),
        "the old memory comes first": lambda memory, segment, M: _last(torch.cat([segment, memory]), M),
        "the memory never changes": lambda memory, segment, M: _last(memory, M),
    },
    praise="a window of M positions that moves on by a segment",
)
