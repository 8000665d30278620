"""Feed-forward attention's context by Triton's kernels: the memory that they work in, and the gradient."""

from typing import Any

import torch
import triton
from jaxtyping import Float, Int
from torch import Tensor

from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.pooling_plain import plain_pooling
from rtx.nn.kernels.precision import autocast_inputs
from rtx.nn.kernels.triton.launch import on, precision
from rtx.nn.kernels.triton.plan import pooling_plan
from rtx.nn.kernels.triton.pooling_backward import gradients_kernel
from rtx.nn.kernels.triton.pooling_forward import context_kernel, sums_kernel


def triton_pooling(
    x: Float[Tensor, "B T F"],
    lengths: Int[Tensor, " B"],
    weight: Float[Tensor, "D F"],
    bias: Tensor,
    score: Tensor | None,
    shift: Tensor | None,
    leak: str,
) -> Float[Tensor, "B D"]:
    """The context, computed in float32, under autocast too: nothing of the states' size is stored."""
    out = autocast_inputs(x)[0].dtype
    with torch.autocast(x.device.type, enabled=False):
        w = torch.cat([weight, bias[:, None]], 1).t().float().contiguous()
        score, shift = (None if part is None else part.flatten().float().contiguous() for part in (score, shift))
        c: Tensor = _Pooling.apply(x, lengths.contiguous(), w, score, shift, leak)
        return c.to(out)


class _Pooling(torch.autograd.Function):
    """c (B, D) of x (B, T, F) and w (F+1, D), w_hc (D,), b_hc (1,): it keeps c, the sum of exp(e_t), and these."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
    ) -> Tensor:
        B, T, _ = x.shape
        D, options = w.shape[1], _options(x, w, score, leak)
        parts = triton.cdiv(T, options["SPAN"])
        masses, totals, c, mass = (w.new_empty(shape) for shape in ((B, parts), (B, parts, D), (B, D), (B,)))
        with on(x):
            sums_kernel[(B, parts)](x.contiguous(), lengths, w, *_scorer(w, score, shift), masses, totals, T, **options)
            context_kernel[(B,)](masses, totals, c, mass, parts, D, options["UNITS"])
        ctx.save_for_backward(x, lengths, w, score, shift, c, mass)
        ctx.leak = leak
        return c

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, lengths, w, score, shift, c, mass = ctx.saved_tensors
        with torch.autocast(x.device.type, enabled=False):
            if only_by_torch(gradients):
                return gradients_again(_plain, (x, lengths, w, score, shift, ctx.leak), gradients)
            (B, T, F), D, options = x.shape, w.shape[1], _options(x, w, score, ctx.leak)
            parts, pull = triton.cdiv(T, options["SPAN"]), (gradients[0] / mass[:, None]).contiguous()
            d_w, d_score, d_shift = (w.new_empty(shape) for shape in ((B, parts, F + 1, D), (B, parts, D), (B, parts)))
            d_x = torch.zeros_like(x, memory_format=torch.contiguous_format) if ctx.needs_input_grad[0] else None
            with on(x):
                gradients_kernel[(B, parts)](
                    x.contiguous(),
                    lengths,
                    w,
                    *_scorer(w, score, shift),
                    pull,
                    (pull * c).sum(1),
                    d_w,
                    d_score,
                    d_shift,
                    w if d_x is None else d_x,
                    T,
                    WANTS_X=d_x is not None,
                    **options,
                )
            of_scorer = (None, None) if score is None else (d_score.sum((0, 1)), d_shift.sum().view(1))
            return d_x, None, d_w.sum((0, 1)), *of_scorer, None


def _plain(x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str) -> Tensor:
    """What `_Pooling` computes, by the plain function."""
    return plain_pooling(x.float(), lengths, w[:-1].t(), w[-1], None if score is None else score[None], shift, leak)


def _scorer(w: Tensor, score: Tensor | None, shift: Tensor | None) -> tuple[Tensor, Tensor]:
    """Places to read from, which the mean does not."""
    return (w, w) if score is None or shift is None else (score, shift)


def _options(x: Tensor, w: Tensor, score: Tensor | None, leak: str) -> dict[str, Any]:
    """What the kernels are compiled for."""
    inputs, units, rows, span, warps = pooling_plan(x.shape[2], w.shape[1])
    sizes = {"F": x.shape[2], "D": w.shape[1], "INPUTS": inputs, "UNITS": units, "ROWS": rows, "SPAN": span}
    return sizes | {"LEAK": leak, "MEAN": score is None, "PRECISION": precision(), "num_warps": warps, "num_stages": 1}
