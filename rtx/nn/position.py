"""Positions as sines and cosines: added to the input, or as rotations of queries and keys.

Vaswani et al. (2017), Attention Is All You Need, §3.5; Su et al. (2021), RoFormer, §3.2.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoidal_positions(length: int, d_model: int, like: Tensor | None = None, start: int = 0) -> Float[Tensor, "T D"]:
    """Return sines (even columns) and cosines (odd columns) of t / 10000^(2i/D), one row for each position t.

    The wavelengths grow from 2π to almost 10000 · 2π if D is large (8913 · 2π at D = 160). The angles are computed in
    float32 at least.

    Args:
        length: T, number of positions.
        d_model: D, number of columns.
        like: a tensor with the dtype and device of the result.
        start: the first position.
    """
    dtype = torch.float64 if like is not None and like.dtype == torch.float64 else torch.float32
    device = None if like is None else like.device
    angles = _angles(length, d_model, start, dtype, device)
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
    return table if like is None else table.to(like.dtype)


def rotate(x: Float[Tensor, "*batch T K"], start: int = 0) -> Float[Tensor, "*batch T K"]:
    """Rotate each pair of numbers (2i, 2i + 1) of position t by the angle t / 10000^(2i/K).

    The product of two rotated vectors depends on their positions only by the difference of these positions.

    Args:
        x: queries or keys; K must be even.
        start: position of the first one.
    """
    T, K = x.shape[-2:]
    angles = _angles(T, K, start, torch.promote_types(x.dtype, torch.float32), x.device)  # (T, K / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    # Eq. (15) of Su et al. (2021): each pair of numbers is turned by its angle
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def _angles(
    length: int, width: int, start: int, dtype: torch.dtype, device: torch.device | None
) -> Float[Tensor, "T pairs"]:
    t = torch.arange(start, start + length, dtype=dtype, device=device)[:, None]
    even = torch.arange(0, width, 2, dtype=dtype, device=device)
    return t * torch.exp(even * (-math.log(10_000.0) / width))
