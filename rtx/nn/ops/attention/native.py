"""Causal attention with dropout in C++, without a (T, T) tensor: `native.cpp` has the algorithm."""

import ctypes
import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.ops.attention.blocks import draw_seed
from rtx.nn.ops.build import library
from rtx.nn.ops.gradients import autocast_inputs, first_derivatives_only, without_autocast


class Strides(ctypes.Structure):
    """Distances in memory between batches, heads and positions, as in native.cpp."""

    _fields_ = [(name, ctypes.c_int64) for name in ("batch", "head", "time")]


class Shape(ctypes.Structure):
    """Sizes and strides of the inputs and outputs, as in native.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "heads", "length", "width")),
        *((name, Strides) for name in ("q", "k", "v", "out")),
        *(("scale", ctypes.c_float), ("zeros", ctypes.c_int), ("seed", ctypes.c_uint64), ("threads", ctypes.c_int)),
    ]


def native_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float
) -> Float[Tensor, "B H T K"]:
    """Return the mean of the values, weighted by attention to the past. A mask has 16 random bits for each weight."""
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in autocast_inputs(q, k, v))
    out: Tensor = _NativeAttention.apply(q, k, v, round(dropout * 2**16), draw_seed() if dropout else 0)
    return out


class _NativeAttention(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, zeros: int, seed: int) -> Tensor:
        out, rows = _empty_heads(v), q.new_empty(*q.shape[:3], 2)
        shape = _shape(q, k, v, out, zeros, seed)
        _call("attention_forward", shape, _workspace(q, shape, 0), q, k, v, out, rows)
        ctx.save_for_backward(q, k, v, out, rows)
        ctx.zeros, ctx.seed = zeros, seed
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, rows = ctx.saved_tensors
        first_derivatives_only("causal_attention", gradients)
        # saved-tensor hooks may return `out` with another memory layout
        out, d_out = (
            x if x.stride() == _empty_heads(v).stride() else _empty_heads(v).copy_(x) for x in (out, gradients[0])
        )
        d_q, d_k, d_v = (_empty_heads(v) for _ in range(3))
        shape = _shape(q, k, v, out, ctx.zeros, ctx.seed)
        _call("attention_backward", shape, _workspace(q, shape, 1), q, k, v, out, rows, d_out, d_q, d_k, d_v)
        return d_q, d_k, d_v, None, None


def _empty_heads(like: Tensor) -> Tensor:
    """Return an empty (B, H, T, K) tensor with the heads side by side in memory, as the output projection reads it."""
    B, H, T, K = like.shape
    return like.new_empty(B, T, H, K).transpose(1, 2)


def _shape(q: Tensor, k: Tensor, v: Tensor, out: Tensor, zeros: int, seed: int) -> Shape:
    strides = (Strides(*x.stride()[:3]) for x in (q, k, v, out))
    return Shape(*q.shape, *strides, 1 / math.sqrt(q.shape[-1]), zeros, seed, torch.get_num_threads())


def _workspace(like: Tensor, shape: Shape, backward: int) -> Tensor:
    """Return working memory for all threads."""
    size = library().attention_workspace
    size.restype = ctypes.c_int64
    return like.new_empty(min(shape.threads, shape.batch * shape.heads) * size(shape, backward))


def _call(name: str, shape: Shape, workspace: Tensor, *arrays: Tensor) -> None:
    pointers = (ctypes.c_void_p(array.data_ptr()) for array in (*arrays, workspace))
    getattr(library(), name)(shape, *pointers)
