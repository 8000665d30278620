"""Causal attention with dropout in C++, and the same dropout in torch for gradients of gradients."""

import ctypes
import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.native.build import library
from rtx.nn.kernels.native.masks import alive, draw_seed, dropped
from rtx.nn.kernels.precision import autocast_inputs, without_autocast


class Strides(ctypes.Structure):
    """How far apart batches, heads and positions are; as in attention.cpp."""

    _fields_ = [(name, ctypes.c_int64) for name in ("batch", "head", "time")]


class Shape(ctypes.Structure):
    """Of the inputs and outputs; as in attention.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "heads", "length", "width")),
        *((name, Strides) for name in ("q", "k", "v", "out")),
        *(("scale", ctypes.c_float), ("dropped", ctypes.c_int), ("seed", ctypes.c_uint64), ("threads", ctypes.c_int)),
    ]


def native_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float = 0.0
) -> Float[Tensor, "B H T K"]:
    """Each position's look at itself and at every earlier one."""
    q, k, v = map(_side_by_side, autocast_inputs(q, k, v))  # outside: gradients of gradients pass it, too
    out: Tensor = _NativeAttention.apply(q, k, v, dropped(dropout), draw_seed() if dropout else 0)
    return out


class _NativeAttention(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, zeros: int, seed: int) -> Tensor:
        out, log_sums = _as_heads(v), q.new_empty(q.shape[:3])
        shape = _shape(q, k, v, out, zeros, seed)
        _call("attention_forward", shape, _workspace(q, shape, 0), q, k, v, out, log_sums)
        ctx.save_for_backward(q, k, v, out, log_sums)
        ctx.zeros, ctx.seed = zeros, seed
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, log_sums = ctx.saved_tensors
        if only_by_torch(gradients):
            return gradients_again(explicit_attention, (q, k, v, ctx.zeros, ctx.seed), gradients)
        # where hooks have kept `out` it may come back laid out otherwise
        out, d_out = (x if x.stride() == _as_heads(v).stride() else _as_heads(v).copy_(x) for x in (out, gradients[0]))
        d_q, d_k, d_v = (_as_heads(v) for _ in range(3))
        shape = _shape(q, k, v, out, ctx.zeros, ctx.seed)
        _call("attention_backward", shape, _workspace(q, shape, 1), q, k, v, out, log_sums, d_out, d_q, d_k, d_v)
        return d_q, d_k, d_v, None, None


def explicit_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], zeros: int, seed: int
) -> Float[Tensor, "B H T K"]:
    """The same by one (T, T) tensor of weights under the same masks: for gradients of gradients."""
    B, H, T, K = q.shape
    past = q.new_ones(T, T, dtype=torch.bool).tril()
    weights = (q @ k.mT / math.sqrt(K)).masked_fill(~past, -math.inf).softmax(-1)
    kept: Bool[Tensor, "B H T T"] = alive(seed, B * H * T, T, zeros).view(B, H, T, T)
    return weights * kept / (1 - zeros / 2**16) @ v


def _side_by_side(x: Tensor) -> Tensor:
    """`x`, its last axis without gaps."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _as_heads(like: Tensor) -> Tensor:
    """An empty (B, H, T, K) tensor whose heads stand side by side in memory, as the output projection reads them."""
    B, H, T, K = like.shape
    return like.new_empty(B, T, H, K).transpose(1, 2)


def _shape(q: Tensor, k: Tensor, v: Tensor, out: Tensor, zeros: int, seed: int) -> Shape:
    strides = (Strides(*x.stride()[:3]) for x in (q, k, v, out))
    return Shape(*q.shape, *strides, 1 / math.sqrt(q.shape[-1]), zeros, seed, torch.get_num_threads())


def _workspace(like: Tensor, shape: Shape, backward: int) -> Tensor:
    """Working memory for every thread."""
    size = library().attention_workspace
    size.restype = ctypes.c_int64
    threads = min(shape.threads, shape.batch * shape.heads)
    return like.new_empty(threads * size(shape, backward))


def _call(name: str, shape: Shape, workspace: Tensor, *arrays: Tensor) -> None:
    pointers = (ctypes.c_void_p(array.data_ptr()) for array in (*arrays, workspace))
    getattr(library(), name)(shape, *pointers)
