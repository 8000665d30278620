"""Exercises of notebook 07: a causal dilated convolution, how far a stack of them sees, and a delay made by hand.

Bai, Kolter & Koltun (2018), §3.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import Exercise

Convolution = Callable[[Tensor, Tensor, int], Tensor]


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
    result: Callable[[Tensor, int], Tensor] = lambda y, k: y,
) -> Convolution:
    """Return a convolution with one thing changed."""

    def convolve(x: Tensor, w: Tensor, d: int) -> Tensor:
        parts = [move(x, delay(i, len(w), d)) @ one for i, one in enumerate(kernel(w))]
        return result(torch.stack(parts).sum(0), len(w))

    return convolve


def _first_repeated(x: Tensor, steps: int) -> Tensor:
    return torch.cat([x[:, :1].expand(-1, steps, -1), x], 1)[:, : x.shape[1]]


def _padded(before: int, after: int) -> Convolution:
    """Return a convolution of x with this many times (k - 1) d zeros on both sides, and not cut."""

    def convolve(x: Tensor, w: Tensor, d: int) -> Tensor:
        last = d * (len(w) - 1)
        padded = pad(x, (0, 0, before * last, after * last))
        length = max(0, padded.shape[1] - last)
        parts = [padded[:, last - d * i : last - d * i + length] @ one for i, one in enumerate(w)]
        return torch.stack(parts).sum(0)

    return convolve


dilated_convolution = Exercise(
    cases=_sequences,
    solution=lambda x, w, d: _sum()(x, w, d),
    bugs={
        "this reads the future: x at t + d i, where it should be t - d i": _sum(lambda i, k, d: -d * i),
        "centred on t, half of the kernel reads the future": _sum(lambda i, k, d: d * (i - k // 2)),
        "the dilation is not used: the inputs of an output are d steps apart": _sum(lambda i, k, d: i),
        "with dilation d the inputs are d steps apart, not d + 1": _sum(lambda i, k, d: (d + 1) * i),
        "the kernel is flipped: w[0] belongs to the present": _sum(kernel=lambda w: w.flip(0)),
        "off by one: w[0] meets x at t - 1, and the present is missing": _sum(lambda i, k, d: d * i + 1),
        "off by one: w[0] meets x at t - d, and the present is missing": _sum(lambda i, k, d: d * (i + 1)),
        "zeros stand before the start: `roll` and negative indices take values from the end": _sum(
            move=lambda x, steps: x.roll(steps, 1)
        ),
        "zeros stand before the start, not copies of the first input": _sum(move=_first_repeated),
        "moved along the features: time is axis 1": _sum(move=lambda x, steps: x.roll(steps, 2)),
        "the output is too long: put zeros in front only, not behind": _padded(1, 1),
        "the output is too short: put (k - 1) d zeros in front": _padded(0, 0),
        "zeros stand behind the sequence, so the outputs come too early: put them in front": _padded(0, 1),
        "this is a mean: the products are added, not divided by k": _sum(result=lambda y, k: y / k),
        "a ReLU follows in the block, not here": _sum(result=lambda y, k: y.relu()),
        "the kernel is transposed: w[i] maps D numbers to E, so it is x @ w[i]": _sum(kernel=lambda w: w.mT),
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
        "this counts the top block alone: add up all dilations": lambda L, k: 1 + 2 * (k - 1) * 2 ** (L - 1),
        "this is one block too many: the last dilation is 2^(L-1)": lambda L, k: 1 + 2 * (k - 1) * (2 ** (L + 1) - 1),
        "the first dilation is 1, not 2": lambda L, k: 1 + 4 * (k - 1) * (2**L - 1),
        "receptive fields add up, they do not multiply": lambda L, k: (2 * k - 1) ** L,
    },
    praise="the steps of all convolutions add up, and the dilations double",
)


def _delays(
    layers: Callable[[int, int], list[bool]],
    tap: Callable[[bool], int] = int,
    eye: Callable[[int], Tensor] = torch.eye,
) -> Callable[[int, int, int], Tensor]:
    """Return kernels (L, 2, D, D), of layers that delay and of layers that pass their input on."""

    def kernels(n: int, L: int, D: int) -> Tensor:
        found = torch.zeros(L, 2, D, D)
        for layer, delays in enumerate(layers(n, L)):
            found[layer, tap(delays)] = eye(D)
        return found

    return kernels


def _bits(n: int, L: int) -> list[bool]:
    return [bool(n >> layer & 1) for layer in range(L)]


def _one_of(taps: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int, int, int], Tensor]:
    return lambda n, L, D: taps(_delays(_bits)(n, L, D), torch.eye(D))


delay_kernels = Exercise(
    cases=lambda: [(5, 3, 2), (0, 2, 2), (6, 3, 3), (1, 1, 2), (31, 5, 2)],
    solution=lambda n, L, D: _delays(_bits)(n, L, D),
    bugs={
        "the layers are in reverse order: layer 0 has dilation 1": _delays(lambda n, L: _bits(n, L)[::-1]),
        "the kernels are flipped: w[0] belongs to the present, w[1] to the step d before": _delays(
            _bits, tap=lambda delays: int(not delays)
        ),
        "the first dilation is 1: your layers would delay by 2, 4, 8, …": _delays(lambda n, L: _bits(n >> 1, L)),
        "all layers delay: together they delay by 2^L - 1": _delays(lambda n, L: [True] * L),
        "no layer delays": _delays(lambda n, L: [False] * L),
        "only the largest dilation delays: the other layers must add the rest": _delays(
            lambda n, L: [layer == n.bit_length() - 1 for layer in range(L)]
        ),
        "the first n layers delay: choose the layers whose dilations add up to n": _delays(
            lambda n, L: [layer < n for layer in range(L)]
        ),
        "one step too many": _delays(lambda n, L: _bits(n + 1, L)),
        "one step too few": _delays(lambda n, L: _bits(max(0, n - 1), L)),
        "a layer that delays must not pass the present on as well": _one_of(
            lambda w, eye: torch.stack([torch.ones(len(w), 1, 1) * eye, w[:, 1]], 1)
        ),
        "a layer that does not delay must pass its input on: its w[0] is the identity": _one_of(
            lambda w, eye: torch.stack([torch.zeros_like(w[:, 0]), w[:, 1]], 1)
        ),
        "a matrix of ones adds all features: use `torch.eye`": _delays(_bits, eye=lambda D: torch.ones(D, D)),
        "these are two numbers per layer: make them matrices, (L, 2, D, D)": _one_of(lambda w, eye: w[..., 0, 0]),
    },
    praise="the layers whose dilations add up to n delay, the others pass their input on",
)
