"""Exercises of notebook 16: two linear steps as one, how long a factor keeps a number, a gradient, the size of a cache.

De et al. (2024), Griffin, §2.4, for the recurrence.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import bug, exercise
from rtx.nn.linear_recurrence import linear_scan


@exercise(lambda: [tuple(torch.rand(4, size)) for size in (4, 7)])
@bug("the order is exchanged: step 2 gets what step 1 made", {"a2 * b1 + b2": "a1 * b2 + b1"})
@bug("the second step multiplies b1, too: b1 is already in the state then", {"a2 * b1": "b1"})
@bug("the factors multiply, they do not add", {"a2 * a1": "a2 + a1"})
@bug("a2 multiplies b1, not a1: a1 was applied before b1 was added", {"a2 * b1": "a1 * b1"})
@bug("b1 is added after the first step, so only a2 multiplies it", {"a2 * b1": "a2 * a1 * b1"})
def compose_steps(a1: Tensor, b1: Tensor, a2: Tensor, b2: Tensor) -> Tensor:
    """Two steps are again a step. So are four, and eight."""
    return torch.stack([a2 * a1, a2 * b1 + b2])


@exercise(lambda: [(0.9,), (0.999,), (0.8,), (0.5,)])
@bug("this is 1 / -log a. After so many steps 1/e is left, not a half", {"math.log(0.5)": "-1"})
@bug("upside down: log ½ is divided by log a", lambda a: math.log(a) / math.log(0.5))
@bug("each step multiplies by a. It does not subtract 1 - a", lambda a: 0.5 / (1 - a))
def half_life(a: float) -> float:
    """After so many steps a half is left: a to the power of this number is ½."""
    return math.log(0.5) / math.log(a)


@exercise(lambda: [(torch.rand(T, 3), torch.randn(T, 3)) for T in (6, 1, 9)])
@bug("this runs forwards: gradients run backwards", lambda a, g: linear_scan(a[None], g[None])[0])
@bug("use a[t + 1]: step t + 1 multiplies h_t by its own factor", {"a[t + 1]": "a[t]"})
@bug("this is in reverse order: the first row belongs to the first step", {".flip(0)": ""})
@bug("only the next output: pass on all collected so far, not g[t + 1] alone", {"found[-1]": "g[t + 1]"})
def gradient_back(a: Tensor, g: Tensor) -> Tensor:
    """The gradient of a linear recurrence is a linear recurrence that runs backwards."""
    found = [g[-1]]
    for t in range(len(g) - 2, -1, -1):
        found.append(g[t] + a[t + 1] * found[-1])
    return torch.stack(found).flip(0)


@exercise(lambda: [(100, 2, 64), (8192, 12, 768), (1, 1, 8)])
@bug("this is half of it. There are keys and values, and a float32 has 4 bytes", {"2 * ": ""})
@bug("these are numbers, not bytes: a float32 has 4 bytes", {" * 4": ""})
@bug("each layer has a cache of its own", {"L * ": ""})
@bug("queries are not kept: a later position never needs them", {"2 * ": "3 * "})
@bug("the weights of all pairs are not kept, only keys and values", {"T * D": "T * T"})
def cache_bytes(T: int, L: int, D: int) -> int:
    """The cache grows with the stream. A recurrence's state does not."""
    return 2 * L * T * D * 4
