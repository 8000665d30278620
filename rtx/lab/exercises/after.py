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


def _step(factor: Composed, term: Composed) -> Composed:
    return lambda a1, b1, a2, b2: torch.stack([factor(a1, b1, a2, b2), term(a1, b1, a2, b2)])


def _factor(a1: Tensor, _b1: Tensor, a2: Tensor, _b2: Tensor) -> Tensor:
    return a2 * a1


def _term(_a1: Tensor, b1: Tensor, a2: Tensor, b2: Tensor) -> Tensor:
    return a2 * b1 + b2


compose_steps = Exercise(
    cases=_steps,
    solution=_step(_factor, _term),
    bugs={
        "the order is exchanged: the second step gets what the first step made": _step(
            _factor, lambda a1, b1, a2, b2: a1 * b2 + b1
        ),
        "the second step multiplies b1, too: b1 is already in the state then": _step(
            _factor, lambda a1, b1, a2, b2: b1 + b2
        ),
        "the factors multiply, they do not add": _step(lambda a1, b1, a2, b2: a1 + a2, _term),
        "b1 is not a factor of h: sort a2 (a1 h + b1) + b2 by h": _step(
            lambda a1, b1, a2, b2: a2 * (a1 + b1), lambda a1, b1, a2, b2: b2
        ),
        "a2 multiplies b1, not a1: the factor a1 was applied before b1 was added": _step(
            _factor, lambda a1, b1, a2, b2: a1 * b1 + b2
        ),
        "b1 is added after the first step, so only a2 multiplies it": _step(
            _factor, lambda a1, b1, a2, b2: a2 * a1 * b1 + b2
        ),
        "b2 is added last, so no factor multiplies it": _step(_factor, lambda a1, b1, a2, b2: a2 * (b1 + b2)),
        "b1 is missing: what the first step added is in the state": _step(_factor, lambda a1, b1, a2, b2: b2),
        "a1 is missing: the first step multiplies the state, too": _step(lambda a1, b1, a2, b2: a2, _term),
        "b1 and b2 add up, they do not multiply": _step(_factor, lambda a1, b1, a2, b2: a2 * b1 * b2),
        "a comes first, then b": _step(_term, _factor),
        "put a and b below each other: `torch.stack` makes shape (2, D), `torch.cat` (2 D,)": (
            lambda a1, b1, a2, b2: torch.cat([a2 * a1, a2 * b1 + b2])
        ),
        "stack along the first dimension: the shape is (2, D)": (
            lambda a1, b1, a2, b2: torch.stack([a2 * a1, a2 * b1 + b2], -1)
        ),
    },
    praise="two steps are again a step: so are four, and eight",
)

half_life = Exercise(
    cases=lambda: [(0.9,), (0.999,), (0.8,), (0.5,)],
    solution=lambda a: math.log(0.5) / math.log(a),
    bugs={
        "this is 1 / (1 - a). After so many steps about 1/e is left, not a half": lambda a: 1 / (1 - a),
        "this is 1 / -log a. After so many steps 1/e is left, not a half": lambda a: -1 / math.log(a),
        "the sign is wrong: both logarithms are negative, so their ratio is positive": (
            lambda a: -math.log(0.5) / math.log(a)
        ),
        "rounded up: a half-life need not be a whole number of steps": (
            lambda a: math.ceil(math.log(0.5) / math.log(a))
        ),
        "rounded down: a half-life need not be a whole number of steps": (
            lambda a: math.floor(math.log(0.5) / math.log(a))
        ),
        "rounded: a half-life need not be a whole number of steps": lambda a: round(math.log(0.5) / math.log(a)),
        "upside down: log ½ is divided by log a": lambda a: math.log(a) / math.log(0.5),
        "each step multiplies by a. It does not subtract 1 - a": lambda a: 0.5 / (1 - a),
        "this is an approximation for a near 1: -log a is not quite 1 - a": lambda a: math.log(2) / (1 - a),
        "½ / a is what one step back from a half is. How many steps lead from 1 to ½?": lambda a: 0.5 / a,
        "this is what is left after half a step. How many steps leave a half?": lambda a: a**0.5,
        "take the logarithm of a, too: a^l = ½ gives l log a = log ½": lambda a: math.log(0.5) / a,
    },
    praise="a to the power of this is a half",
)


def _gradients() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    return [(torch.rand(T, 3, generator=draw), torch.randn(T, 3, generator=draw)) for T in (6, 1, 9)]


def _back(a: Tensor, g: Tensor) -> Tensor:
    """Return g_t + a_{t+1} (g_{t+1} + a_{t+2} (…))."""
    later = torch.zeros_like(g[0])
    found = []
    for t in range(len(g) - 1, -1, -1):
        later = g[t] + (a[t + 1] * later if t + 1 < len(g) else 0)
        found.append(later)
    return torch.stack(found).flip(0)


def _next(a: Tensor) -> Tensor:
    return torch.cat([a[1:], torch.ones_like(a[:1])])


def _forth(a: Tensor, g: Tensor) -> Tensor:
    h, found = torch.zeros_like(g[0]), []
    for a_t, g_t in zip(a, g, strict=True):
        h = a_t * h + g_t
        found.append(h)
    return torch.stack(found)


def _shifted(g: Tensor) -> Tensor:
    return torch.cat([g[1:], torch.zeros_like(g[:1])])


gradient_back = Exercise(
    cases=_gradients,
    solution=_back,
    bugs={
        "this runs forwards: a later output depends on an earlier term, so gradients run backwards": _forth,
        "use a[t + 1]: the step from t to t + 1 multiplies by the factor of step t + 1": (
            lambda a, g: _forth(a.flip(0), g.flip(0)).flip(0)
        ),
        "this is in reverse order: the first row belongs to the first step": lambda a, g: _back(a, g).flip(0),
        "only the output of the same step: later outputs depend on b_t, too": lambda a, g: g,
        "only the next output: pass on all that was collected, not g[t + 1] alone": (
            lambda a, g: g + _next(a) * _shifted(g)
        ),
        "this is the gradient of h_{t-1}: the last multiplication by a[t] is too much": lambda a, g: a * _back(a, g),
        "g[t] itself is missing: the output of the same step has the gradient 1": lambda a, g: _back(a, g) - g,
        "the factors are missing: each step multiplies by a[t + 1]": lambda a, g: g.flip(0).cumsum(0).flip(0),
        "the factors are missing, and the sum runs forwards": lambda a, g: g.cumsum(0),
        "this flips g only. The factors run backwards, too": lambda a, g: _forth(a, g.flip(0)).flip(0),
        "divided by the factors instead of multiplied": lambda a, g: _back(1 / a, g),
        "this is the sum over the steps: keep a row for each step": lambda a, g: _back(a, g).sum(0),
    },
    praise="the gradient of a linear recurrence is a linear recurrence that runs backwards",
)

cache_bytes = Exercise(
    cases=lambda: [(100, 2, 64), (8192, 12, 768), (1, 1, 8)],
    solution=lambda T, L, D: 2 * L * T * D * 4,
    bugs={
        "this is half of it. There are keys and values, and a number of 32 bits has 4 bytes": (
            lambda T, L, D: L * T * D * 4
        ),
        "these are numbers, not bytes: a float32 has 4 bytes": lambda T, L, D: 2 * L * T * D,
        "these are numbers of keys only: values are kept, too, and a float32 has 4 bytes": lambda T, L, D: L * T * D,
        "these are bits: a byte has 8": lambda T, L, D: 2 * L * T * D * 32,
        "this is twice as much: a float32 has 4 bytes, a float64 has 8": lambda T, L, D: 2 * L * T * D * 8,
        "each layer has a cache of its own": lambda T, L, D: 2 * T * D * 4,
        "each position leaves a key and a value: multiply by T": lambda T, L, D: 2 * L * D * 4,
        "each key has D numbers: multiply by D": lambda T, L, D: 2 * L * T * 4,
        "queries are not kept: a later position never needs them": lambda T, L, D: 3 * L * T * D * 4,
        "the weights of all pairs are not kept, only keys and values": lambda T, L, D: 2 * L * T * T * 4,
        "this counts weights of the model, (D, D). A cache has T rows of D numbers": lambda T, L, D: 2 * L * D * D * 4,
        "these are kilobytes: the exercise asks for bytes": lambda T, L, D: 2 * L * T * D * 4 / 1000,
        "these are units of 1,024 bytes: the exercise asks for bytes": lambda T, L, D: 2 * L * T * D * 4 / 1024,
    },
    praise="it grows with the stream; a recurrence's state does not",
)
