"""Exercises of notebook 07: a causal dilated convolution, how far a stack of them sees, and a delay made by hand.

Bai, Kolter & Koltun (2018), §3.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import bug, exercise


def _sequences() -> list[tuple[Tensor, Tensor, int]]:
    """Return x (B, T, D), w (k, D, E) with w[0] for the present, and d. The last kernel is longer than its sequence."""
    sizes = ((2, 9, 3, 3, 3, 2), (2, 8, 3, 3, 4, 1), (1, 10, 2, 4, 3, 3), (2, 4, 2, 3, 2, 3))
    return [(torch.randn(B, T, D), torch.randn(k, D, E), d) for B, T, D, k, E, d in sizes]


def _shifted(x: Tensor, steps: int) -> Tensor:
    """Return x delayed by so many steps, with zeros before it; a negative number moves it ahead of time."""
    T = x.shape[1]
    return pad(x, (0, 0, steps, 0))[:, :T] if steps >= 0 else pad(x, (0, 0, 0, -steps))[:, -steps:]


@exercise(_sequences)
@bug("this reads the future: x at t + d i, where it should be t - d i", {"d * i": "-d * i"})
@bug("centred on t, half of the kernel reads the future", {"d * i": "d * (i - len(w) // 2)"})
@bug("the dilation is not used: the inputs of an output are d steps apart", {"d * i": "i"})
@bug("the kernel is flipped: w[0] belongs to the present", {"w[i]": "w[-1 - i]"})
@bug("put zeros before the start: `roll` and negative indices go round", {"_shifted(x, d * i)": "x.roll(d * i, 1)"})
def dilated_convolution(x: Tensor, w: Tensor, d: int) -> Tensor:
    """The convolution has a matrix for each delay, and reads nothing but the past."""
    return torch.stack([_shifted(x, d * i) @ w[i] for i in range(len(w))]).sum(0)


@exercise(lambda: [(1, 2), (2, 3), (4, 6), (8, 7)])
@bug("a block has two convolutions, both with its dilation", {"2 * (k": "(k"})
@bug("the dilations double from block to block: 1 + 2 + 4 + … = 2^L - 1", {"(2**L - 1)": "L"})
@bug("a kernel of k has k - 1 steps between its ends", {"(k - 1)": "k"})
@bug("the present position itself is missing", {"1 + ": ""})
def tcn_reach(L: int, k: int) -> int:
    """The steps of all convolutions add up, and the dilations double."""
    return 1 + 2 * (k - 1) * (2**L - 1)


@exercise(lambda: [(5, 3, 2), (0, 2, 2), (6, 3, 3), (1, 1, 2), (31, 5, 2)])
@bug("the layers are in reverse order: layer 0 has dilation 1", {"kernels[layer": "kernels[-1 - layer"})
@bug("the kernels are flipped: w[0] belongs to the present", {"delays] =": "1 - delays] ="})
@bug("the first n layers delay: choose the layers whose dilations add up to n", {"n >> layer & 1": "int(layer < n)"})
@bug("a layer without a delay passes its input on: its w[0] is the identity", {"eye(D)": "eye(D) * delays"})
def delay_kernels(n: int, L: int, D: int) -> Tensor:
    """The layers whose dilations add up to n delay. The others pass their input on."""
    kernels = torch.zeros(L, 2, D, D)
    for layer in range(L):
        delays = n >> layer & 1
        kernels[layer, delays] = torch.eye(D)
    return kernels
