"""Checks of notebook 16: two linear steps as one, how long a factor keeps a number, a gradient, the size of a cache.

De et al. (2024), Griffin, §2.4, for the recurrence.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Composed = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def _steps() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [tuple(torch.rand(size, generator=draw) for _ in range(4)) for size in (4, 7)]


def _both(b: Composed = lambda a1, b1, a2, b2: a2 * b1 + b2, a: Composed = lambda a1, b1, a2, b2: a2 * a1) -> Composed:
    """Return the step that does both steps, with one thing changed."""
    return lambda a1, b1, a2, b2: torch.stack([a(a1, b1, a2, b2), b(a1, b1, a2, b2)])


compose_steps = Exercise(
    cases=_steps,
    solution=_both(),
    bugs={
        "the order is exchanged: step 2 gets what step 1 made": _both(lambda a1, b1, a2, b2: a1 * b2 + b1),
        "the second step multiplies b1, too: b1 is already in the state then": _both(lambda a1, b1, a2, b2: b1 + b2),
        "the factors multiply, they do not add": _both(a=lambda a1, b1, a2, b2: a1 + a2),
        "a2 multiplies b1, not a1: a1 was applied before b1 was added": _both(lambda a1, b1, a2, b2: a1 * b1 + b2),
        "b1 is added after the first step, so only a2 multiplies it": _both(lambda a1, b1, a2, b2: a2 * a1 * b1 + b2),
        "a comes first, then b": lambda *given: _both()(*given).flip(0),
    },
    praise="two steps are again a step: so are four, and eight",
)

half_life = Exercise(
    cases=lambda: [(0.9,), (0.999,), (0.8,), (0.5,)],
    solution=lambda a: math.log(0.5) / math.log(a),
    bugs={
        "this is 1 / (1 - a). After so many steps about 1/e is left, not a half": lambda a: 1 / (1 - a),
        "this is 1 / -log a. After so many steps 1/e is left, not a half": lambda a: -1 / math.log(a),
        "the sign is wrong: two negative logarithms have a positive ratio": lambda a: -math.log(0.5) / math.log(a),
        "upside down: log ½ is divided by log a": lambda a: math.log(a) / math.log(0.5),
        "each step multiplies by a. It does not subtract 1 - a": lambda a: 0.5 / (1 - a),
        "this is an approximation for a near 1: -log a is not quite 1 - a": lambda a: math.log(2) / (1 - a),
    },
    praise="a to the power of this is a half",
)


def _gradients() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    return [(torch.rand(T, 3, generator=draw), torch.randn(T, 3, generator=draw)) for T in (6, 1, 9)]


def _forth(a: Tensor, g: Tensor) -> Tensor:
    h, found = torch.zeros_like(g[0]), []
    for a_t, g_t in zip(a, g, strict=True):
        h = a_t * h + g_t
        found.append(h)
    return torch.stack(found)


def _next(x: Tensor) -> Tensor:
    """Return for each row the one after it, and zeros after the last."""
    return torch.cat([x[1:], torch.zeros_like(x[:1])])


def _back(a: Tensor, g: Tensor) -> Tensor:
    """Return g_t + a_{t+1} (g_{t+1} + a_{t+2} (…))."""
    return _forth(_next(a).flip(0), g.flip(0)).flip(0)


gradient_back = Exercise(
    cases=_gradients,
    solution=_back,
    bugs={
        "this runs forwards: a later output depends on an earlier term, so gradients run backwards": _forth,
        "use a[t + 1]: step t + 1 multiplies h_t by its own factor": lambda a, g: _forth(a.flip(0), g.flip(0)).flip(0),
        "this is in reverse order: the first row belongs to the first step": lambda a, g: _back(a, g).flip(0),
        "only the next output: pass on all collected so far, not g[t + 1] alone": lambda a, g: g + _next(a) * _next(g),
        "this is the gradient of h_{t-1}: the last multiplication by a[t] is too much": lambda a, g: a * _back(a, g),
        "this flips g only. The factors run backwards, too": lambda a, g: _forth(a, g.flip(0)).flip(0),
    },
    praise="the gradient of a linear recurrence is a linear recurrence that runs backwards",
)

cache_bytes = Exercise(
    cases=lambda: [(100, 2, 64), (8192, 12, 768), (1, 1, 8)],
    solution=lambda T, L, D: 2 * L * T * D * 4,
    bugs={
        "this is half of it. There are keys and values, and a float32 has 4 bytes": lambda T, L, D: L * T * D * 4,
        "these are numbers, not bytes: a float32 has 4 bytes": lambda T, L, D: 2 * L * T * D,
        "these are numbers of keys only: values are kept, too, and a float32 has 4 bytes": lambda T, L, D: L * T * D,
        "each layer has a cache of its own": lambda T, L, D: 2 * T * D * 4,
        "queries are not kept: a later position never needs them": lambda T, L, D: 3 * L * T * D * 4,
        "the weights of all pairs are not kept, only keys and values": lambda T, L, D: 2 * L * T * T * 4,
    },
    praise="it grows with the stream; a recurrence's state does not",
)
