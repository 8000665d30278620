"""Dropout in C++: nothing is kept for the backward pass but a seed."""

import ctypes
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.kernels.derivatives import only_by_torch
from rtx.nn.kernels.native.build import library
from rtx.nn.kernels.native.masks import alive, draw_seed, dropped

SMALL = 2**18  # numbers: below, a second thread costs more than it does


def native_dropout(x: Float[Tensor, "*rows D"], rate: float) -> Float[Tensor, "*rows D"]:
    """Zero a share of the numbers, and scale the others by 1 / (1 - rate)."""
    y: Tensor = _NativeDropout.apply(x, dropped(rate), draw_seed())
    return y


class _NativeDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, zeros: int, seed: int) -> Tensor:
        ctx.zeros, ctx.seed = zeros, seed
        return _drop(x, zeros, seed)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (d_y,) = gradients
        if only_by_torch(gradients):
            lives = alive(ctx.seed, *_rows_and_columns(d_y), ctx.zeros).view(d_y.shape)
            return d_y * lives * _scale(ctx.zeros), None, None
        return _drop(d_y, ctx.zeros, ctx.seed), None, None


def native_relu_dropout(x: Float[Tensor, "*rows D"], rate: float) -> Float[Tensor, "*rows D"]:
    """The same of max(0, x): its own output tells the backward pass all."""
    y: Tensor = _NativeReluDropout.apply(x, dropped(rate), draw_seed())
    return y


class _NativeReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, zeros: int, seed: int) -> Tensor:
        y = _drop(x, zeros, seed, rectified=True)
        ctx.zeros = zeros
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (y,), (d_y,) = ctx.saved_tensors, gradients
        if only_by_torch(gradients):
            return torch.where(y <= 0, 0, d_y * _scale(ctx.zeros)), None, None
        d_y = d_y.contiguous()
        d_x = torch.empty_like(d_y)
        arrays = (ctypes.c_void_p(array.data_ptr()) for array in (y, d_y, d_x))
        library().drop_rectified_back(ctypes.c_int64(y.numel()), ctx.zeros, _threads(y), *arrays)
        return d_x, None, None


def _drop(x: Tensor, zeros: int, seed: int, rectified: bool = False) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    sizes = (*map(ctypes.c_int64, _rows_and_columns(x)), ctypes.c_uint64(seed), zeros, int(rectified), _threads(x))
    library().drop(*sizes, *(ctypes.c_void_p(array.data_ptr()) for array in (x, y)))
    return y


def _scale(zeros: int) -> float:
    """What the numbers that live are multiplied by."""
    return 2**16 / (2**16 - zeros)


def _threads(x: Tensor) -> int:
    return torch.get_num_threads() if x.numel() >= SMALL else 1


def _rows_and_columns(x: Tensor) -> tuple[int, int]:
    columns = x.shape[-1] if x.ndim else 1
    return x.numel() // max(1, columns), columns
