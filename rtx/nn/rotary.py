"""Rotary positions: queries and keys turned by angles that grow with their position, so that scores see distances.

Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding, §3.2.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def rotate(x: Float[Tensor, "*batch T K"], start: int = 0) -> Float[Tensor, "*batch T K"]:
    """Turn each pair of numbers (2i, 2i + 1) of position t by the angle t / 10000^(2i/K), t = start, start + 1, ….

    Angles are computed in float32 at least. The product of two vectors so turned depends on their positions'
    difference alone.

    Raises:
        ValueError: if K is odd.
    """
    T, K = x.shape[-2:]
    if K % 2:
        raise ValueError(f"x: expected an even width, as rotary positions turn pairs of numbers, got {K}")
    wide = torch.promote_types(x.dtype, torch.float32)
    t = torch.arange(start, start + T, dtype=wide, device=x.device)[:, None]
    frequencies = torch.exp(torch.arange(0, K, 2, dtype=wide, device=x.device) * (-math.log(10_000.0) / K))
    cos, sin = (t * frequencies).cos().to(x.dtype), (t * frequencies).sin().to(x.dtype)  # (T, K / 2)
    even, odd = x[..., ::2], x[..., 1::2]
    # (x_2i, x_2i+1) turned by t θ_i
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
