"""Exercises of notebook 07: a causal dilated convolution, how far a stack of them sees, and a delay made by hand.

Bai, Kolter & Koltun (2018), §3.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import Exercise


def _sequences() -> list[tuple[Tensor, Tensor, int]]:
    """Return x (B, T, D), w (k, D, E) with w[0] for the present, and d. The last kernel is longer than its sequence."""
    draw = torch.Generator().manual_seed(0)
    sizes = (
        ((2, 9, 3), (3, 3, 3), 2),
        ((2, 8, 3), (3, 3, 4), 1),
        ((1, 10, 2), (4, 2, 3), 3),
        ((2, 4, 2), (3, 2, 2), 3),
    )
    return [(torch.randn(*x, generator=draw), torch.randn(*w, generator=draw), d) for x, w, d in sizes]


def _shifted(x: Tensor, steps: int) -> Tensor:
    """Return x delayed by so many steps, with zeros before it; a negative number moves it ahead of time."""
    T = x.shape[1]
    return pad(x, (0, 0, steps, 0))[:, :T] if steps >= 0 else pad(x, (0, 0, 0, -steps))[:, -steps:]


def _sum(
    delay: Callable[[int, int, int], int] = lambda i, k, d: d * i,
    move: Callable[[Tensor, int], Tensor] = _shifted,
    kernel: Callable[[Tensor], Tensor] = lambda w: w,
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return a convolution with one thing changed."""

    def convolve(x: Tensor, w: Tensor, d: int) -> Tensor:
        parts = [move(x, delay(i, len(w), d)) @ one for i, one in enumerate(kernel(w))]
        return torch.stack(parts).sum(0)

    return convolve


dilated_convolution = Exercise(
    cases=_sequences,
    solution=_sum(),
    bugs={
        "this reads the future: x at t + d i, where it should be t - d i": _sum(lambda i, k, d: -d * i),
        "centred on t, half of the kernel reads the future": _sum(lambda i, k, d: d * (i - k // 2)),
        "the dilation is not used: the inputs of an output are d steps apart": _sum(lambda i, k, d: i),
        "the kernel is flipped: w[0] belongs to the present": _sum(kernel=lambda w: w.flip(0)),
        "zeros stand before the start: `roll` and negative indices take values from the end": _sum(
            move=lambda x, steps: x.roll(steps, 1)
        ),
        "zeros stand behind the sequence: put them in front": _sum(lambda i, k, d: d * (i - k + 1)),
    },
    praise="a matrix for each delay, and nothing but the past",
)

tcn_reach = Exercise(
    cases=lambda: [(1, 2), (2, 3), (4, 6), (8, 7)],
    solution=lambda L, k: 1 + 2 * (k - 1) * (2**L - 1),
    bugs={
        "a block has two convolutions, both with its dilation": lambda L, k: 1 + (k - 1) * (2**L - 1),
        "the dilations double from block to block: 1 + 2 + 4 + … = 2^L - 1": lambda L, k: 1 + 2 * (k - 1) * L,
        "the sum 1 + 2 + … + 2^(L-1) is 2^L - 1": lambda L, k: 1 + 2 * (k - 1) * 2**L,
        "a kernel of k has k - 1 steps between its ends": lambda L, k: 1 + 2 * k * (2**L - 1),
        "the present position itself is missing": lambda L, k: 2 * (k - 1) * (2**L - 1),
    },
    praise="the steps of all convolutions add up, and the dilations double",
)


def _bits(n: int, L: int) -> list[int]:
    """Return for each layer whether it delays."""
    return [n >> layer & 1 for layer in range(L)]


def _kernels(
    layers: Callable[[int, int], list[int]] = _bits,
    taps: Callable[[int], tuple[int, int]] = lambda delays: (1 - delays, delays),
    matrix: Callable[[int], Tensor] = torch.eye,
) -> Callable[[int, int, int], Tensor]:
    """Return kernels (L, 2, D, D), with one thing changed. `taps` says how much of w[0] and w[1] a layer has."""

    def kernels(n: int, L: int, D: int) -> Tensor:
        return torch.tensor([taps(delays) for delays in layers(n, L)])[..., None, None] * matrix(D)

    return kernels


delay_kernels = Exercise(
    cases=lambda: [(5, 3, 2), (0, 2, 2), (6, 3, 3), (1, 1, 2), (31, 5, 2)],
    solution=_kernels(),
    bugs={
        "the layers are in reverse order: layer 0 has dilation 1": _kernels(lambda n, L: _bits(n, L)[::-1]),
        "the kernels are flipped: w[0] belongs to the present": _kernels(taps=lambda delays: (delays, 1 - delays)),
        "the first n layers delay: choose the layers whose dilations add up to n": _kernels(
            lambda n, L: [int(layer < n) for layer in range(L)]
        ),
        "a layer that delays must not pass the present on as well": _kernels(taps=lambda delays: (1, delays)),
        "a layer without a delay passes its input on: its w[0] is the identity": _kernels(
            taps=lambda delays: (0, delays)
        ),
        "a matrix of ones adds all features: use `torch.eye`": _kernels(matrix=lambda D: torch.ones(D, D)),
    },
    praise="the layers whose dilations add up to n delay, the others pass their input on",
)
