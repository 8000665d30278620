"""Dropout masks that depend on a seed and the position only, so that a backward pass can draw them again.

These are the masks of `masks.h` in torch, bit by bit the same. C++ draws its own; second derivatives need these.
"""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

LANES = 16  # numbers in a vector of vector.h
LOW = 2**32 - 1


def rate_too_high(dropout: float) -> str | None:
    """Return why masks cannot express this rate, or None if they can."""
    return f"its masks express rates up to 255/256, and this is {dropout}" if dropout > 255 / 256 else None


def draw_seed() -> int:
    """Draw the seed of a mask from torch's generator, so that `torch.manual_seed` makes masks repeatable."""
    return int(torch.randint(2**62, (), device="cpu"))


def zeros_in_65536(dropout: float) -> int:
    """Return the rate as a number of zeros in 65,536: a mask has 16 random bits for each weight."""
    return round(dropout * 2**16)


def kept(seed: int, rows: int, columns: int, zeros: int) -> Bool[Tensor, "rows columns"]:
    """Return True for the weights that are kept."""
    keys = _row_keys(seed, rows)[:, None]
    column = torch.arange(columns, device="cpu")
    word = column // (2 * LANES) * LANES + column % LANES
    x = (word * 0x9E3779B9 + (keys & LOW)) & LOW
    x = (x ^ x >> 16) * 0x85EBCA6B & LOW
    x = (x ^ x >> 13) * 0xC2B2AE35 & LOW
    x = (x ^ x >> 16) ^ _shift_right(keys, 32)
    return torch.where(column % (2 * LANES) < LANES, x & 0xFFFF, x >> 16) >= zeros


def _row_keys(seed: int, rows: int) -> Int64[Tensor, " rows"]:
    """SplitMix64 of each row's number. Products of 64 bits wrap around, as in C++."""
    z = seed + (torch.arange(rows, device="cpu") + 1) * (0x9E3779B97F4A7C15 - 2**64)
    z = (z ^ _shift_right(z, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    z = (z ^ _shift_right(z, 27)) * (0x94D049BB133111EB - 2**64)
    return z ^ _shift_right(z, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Shift in zeros from the left, as for an unsigned number."""
    return x >> bits & (2 ** (64 - bits) - 1)
