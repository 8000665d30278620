"""Checks of notebook 16: two steps of a linear recurrence as one, how long a decay remembers, what a cache weighs.

De et al. (2024), Griffin, §2.4, for the recurrence.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise


def _steps() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [tuple(torch.rand(size, generator=draw) for _ in range(4)) for size in (4, 7)]


compose_steps = Exercise(
    cases=_steps,
    solution=lambda a1, b1, a2, b2: torch.stack([a2 * a1, a2 * b1 + b2]),
    bugs={
        "the order is exchanged: the second step is applied to what the first made": (
            lambda a1, b1, a2, b2: torch.stack([a1 * a2, a1 * b2 + b1])
        ),
        "what the first step added decays in the second, too": lambda a1, b1, a2, b2: torch.stack([a2 * a1, b1 + b2]),
        "decays multiply, they do not add": lambda a1, b1, a2, b2: torch.stack([a1 + a2, a2 * b1 + b2]),
        "h stands in the first part alone: b1 is no factor of h": (
            lambda a1, b1, a2, b2: torch.stack([a2 * (a1 + b1), b2])
        ),
    },
    praise="two steps are again a step: so are four, and eight",
)

half_life = Exercise(
    cases=lambda: [(0.9,), (0.999,), (0.5,)],
    solution=lambda a: math.log(0.5) / math.log(a),
    bugs={
        "this is 1 / (1 - a), the time to fall to a share of about 1/e": lambda a: 1 / (1 - a),
        "this is 1 / -log a, the time to fall to 1/e, not to a half": lambda a: -1 / math.log(a),
        "the sign: both logarithms are negative": lambda a: -math.log(0.5) / math.log(a),
        "rounded up: a half-life need not be a whole number of steps": (
            lambda a: math.ceil(math.log(0.5) / math.log(a))
        ),
        "rounded down: a half-life need not be a whole number of steps": (
            lambda a: math.floor(math.log(0.5) / math.log(a))
        ),
        "upside down: log(½) stands above the line": lambda a: math.log(a) / math.log(0.5),
        "half of the decay is not the decay to a half": lambda a: 0.5 / (1 - a),
    },
    praise="a to the power of this is a half",
)

cache_bytes = Exercise(
    cases=lambda: [(100, 2, 64), (8192, 12, 768), (1, 1, 8)],
    solution=lambda T, L, D: 2 * L * T * D * 4,
    bugs={
        "this is half of it: keys and values, and 4 bytes for a number of 32 bits": lambda T, L, D: L * T * D * 4,
        "a float32 has 4 bytes": lambda T, L, D: 2 * L * T * D,
        "these are bits: a byte has 8": lambda T, L, D: 2 * L * T * D * 32,
        "each layer has a cache of its own": lambda T, L, D: 2 * T * D * 4,
        "the weights of all pairs are not kept, only keys and values": lambda T, L, D: 2 * L * T * T * 4,
    },
    praise="it grows with the stream; a recurrence's state does not",
)
