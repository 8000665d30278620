"""The dropout of masks.h in torch, number by number the same."""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

LANES = 16  # of a vector
LOW = 2**32 - 1


def draw_seed() -> int:
    """A seed for masks, of torch's own generator: `torch.manual_seed` rules them, too."""
    return int(torch.randint(2**62, (), device="cpu"))


def dropped(rate: float) -> int:
    """How many of 65,536 numbers are zeros: the rate as near as 16 random bits can tell."""
    return round(rate * 2**16)


def alive(seed: int, rows: int, columns: int, zeros: int) -> Bool[Tensor, "rows columns"]:
    """Which numbers live."""
    keys = _row_keys(seed, rows)[:, None]
    column = torch.arange(columns, device="cpu")
    word = column // (2 * LANES) * LANES + column % LANES
    x = (word * 0x9E3779B9 + (keys & LOW)) & LOW
    x = (x ^ x >> 16) * 0x85EBCA6B & LOW
    x = (x ^ x >> 13) * 0xC2B2AE35 & LOW
    x = (x ^ x >> 16) ^ _shifted(keys, 32)
    return torch.where(column % (2 * LANES) < LANES, x & 0xFFFF, x >> 16) >= zeros


def _row_keys(seed: int, rows: int) -> Int64[Tensor, " rows"]:
    """SplitMix64 of each row's number; products of 64 bits wrap around."""
    z = seed + (torch.arange(rows, device="cpu") + 1) * _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """To the right, with zeros from the left, as for a number without a sign."""
    return x >> bits & (2 ** (64 - bits) - 1)


def _signed(x: int) -> int:
    """The same 64 bits as a number with a sign."""
    return x - 2**64
