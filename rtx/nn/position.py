"""Absolute positions as sinusoids: Vaswani et al. (2017), §3.5."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.validate import check_positive


def sinusoidal_positions(length: int, d_model: int, like: Tensor | None = None, start: int = 0) -> Float[Tensor, "T D"]:
    """Sines (even columns) and cosines (odd columns) of t / 10000^(2i/D), for t = start … start + length - 1.

    Wavelengths grow from 2π to 10000 · 2π. Computed in float32 at least, for any length, then cast to the dtype of
    `like` and put on its device.

    Raises:
        ValueError: if a size is below 1.
    """
    check_positive("length", length), check_positive("d_model", d_model)
    dtype = torch.float64 if like is not None and like.dtype == torch.float64 else torch.float32
    device = None if like is None else like.device
    t = torch.arange(start, start + length, dtype=dtype, device=device)[:, None]
    even = torch.arange(0, d_model, 2, dtype=dtype, device=device)
    angles = t * torch.exp(even * (-math.log(10_000.0) / d_model))  # (T, ceil(D / 2))
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
    return table if like is None else table.to(like.dtype)
