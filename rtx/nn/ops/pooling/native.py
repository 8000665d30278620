"""Feed-forward attention's pooling in C++: a state lives in registers and is never stored."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from rtx.nn.ops.build import library
from rtx.nn.ops.gradients import first_derivatives_only, without_autocast
from rtx.nn.ops.pooling.torch import SMALLEST


class Layer(ctypes.Structure):
    """The parameters, and where the steps are in memory, as in native.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "inputs", "units", "sequence", "step", "input")),
        *((name, ctypes.c_void_p) for name in ("w", "score", "shift")),
        *((name, ctypes.c_int) for name in ("printed", "threads")),
    ]


class Gradients(ctypes.Structure):
    """Where the gradients go, as in native.cpp."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("w", "score", "shift", "x")]


def native_pooling(
    x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Tensor:
    """Return the context c = Σ α_t h_t."""
    score, shift = (None if part is None else part.contiguous() for part in (score, shift))
    c: Tensor = _NativePooling.apply(x, lengths, weight, bias, score, shift, leak)
    return c


class _NativePooling(torch.autograd.Function):
    """Stores the inputs, the context c (B, D) and the sums of exp(e_t), (B,), and nothing of size T."""

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any,
        x: Tensor,
        lengths: Tensor,
        weight: Tensor,
        bias: Tensor,
        score: Tensor | None,
        shift: Tensor | None,
        leak: str,
    ) -> Tensor:
        lengths, w = lengths.long().contiguous(), torch.cat([weight, bias[:, None]], 1).t().contiguous()
        mass, total = x.new_empty(len(x)), x.new_empty(len(x), len(weight))
        layer = _layer(x, w, score, shift, leak)
        library().pooling_forward(layer, *map(_pointer, (x, lengths, mass, total)))
        mass.clamp_(min=SMALLEST)  # an empty sequence has the context 0
        c = total / mass[:, None]
        ctx.save_for_backward(x, lengths, score, shift, w, c, mass)
        ctx.leak = leak
        return c

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, lengths, score, shift, w, c, mass = ctx.saved_tensors
        first_derivatives_only("pooling", gradients)
        (B, T, F), D = x.shape, w.shape[1]
        pull = (gradients[0] / mass[:, None]).contiguous()
        level = (pull * c).sum(1)
        g_w, g_score, g_shift = x.new_empty(B, F + 1, D), x.new_empty(B, D), x.new_empty(B)
        g_x = x.new_zeros(B, T, F) if ctx.needs_input_grad[0] else None
        found = Gradients(*map(_pointer, (g_w, g_score, g_shift, g_x)))
        arrays = (*map(_pointer, (x, lengths)), ctypes.c_int64(T), *map(_pointer, (pull, level)))
        library().pooling_backward(_layer(x, w, score, shift, ctx.leak), *arrays, found)
        w_sum = g_w.sum(0)
        of_score = (None, None) if score is None else (g_score.sum(0).view_as(score), g_shift.sum().view_as(shift))
        return g_x, None, w_sum[:F].t(), w_sum[F], *of_score, None


def _layer(x: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str) -> Layer:
    pointers = map(_pointer, (w, score, shift))
    return Layer(len(x), x.shape[2], w.shape[1], *x.stride(), *pointers, leak == "printed", torch.get_num_threads())


def _pointer(array: Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.data_ptr())
