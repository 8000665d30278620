"""Feed-forward attention's context, c = Σ α_t h_t, without ever holding the states of all steps.

Raffel & Ellis (2015), Eq. 1-2. A score is a tanh, between -1 and 1, so the softmax needs no running maximum: a pass
over the steps adds up exp(e_t) and exp(e_t) h_t, and the way back computes the states once more.
"""

from typing import Any

import torch
from torch import Tensor

from rtx.nn import naive_pooling
from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.native.pooling import native_pooling
from rtx.nn.kernels.obstacles import no_hand_written_gradient, no_native_code
from rtx.nn.kernels.pooling_plain import plain_pooling
from rtx.nn.kernels.pooling_tiles import Layer, gradients, layer_for, sums, tiles
from rtx.nn.kernels.precision import autocast_inputs
from rtx.nn.kernels.triton.obstacles import for_tests_alone, no_pooling


class _Pooling(torch.autograd.Function):
    """c (B, D) of x (B, T, F) and w (F+1, D), w_hc (D,), b_hc (1,): it keeps c, the sum of exp(e_t), and these."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
    ) -> Tensor:
        layer = layer_for(w, score, shift, leak)
        mass, total = w.new_zeros(len(x)), w.new_zeros(len(x), w.shape[1])
        for rows, _, tile in tiles(x, lengths, w.dtype):
            of_mass, of_total = sums(tile, layer)
            mass[rows], total[rows] = mass[rows] + of_mass, total[rows] + of_total
        c = total / mass[:, None]
        ctx.save_for_backward(x, lengths, w, score, shift, c, mass)
        ctx.leak = leak
        return c

    @staticmethod
    def backward(ctx: Any, *pulls: Tensor) -> tuple[Tensor | None, ...]:
        x, lengths, w, score, shift, c, mass = ctx.saved_tensors
        with torch.autocast(x.device.type, enabled=False):
            if only_by_torch(pulls):
                return gradients_again(_plain, (x, lengths, w, score, shift, ctx.leak), pulls)
            pull = pulls[0] / mass[:, None]
            layer = layer_for(w, score, shift, ctx.leak)
            return *_add_up(x, lengths, layer, pull, (pull * c).sum(1), ctx.needs_input_grad[0]), None


def _add_up(
    x: Tensor, lengths: Tensor, layer: Layer, pull: Tensor, level: Tensor, wants_x: bool
) -> list[Tensor | None]:
    """The gradients of x, lengths, w, w_hc and b_hc, tile by tile."""
    g_x = torch.zeros_like(x) if wants_x else None
    totals = [None if part is None else torch.zeros_like(part) for part in layer[:3]]
    for rows, steps, tile in tiles(x, lengths, layer.w.dtype):
        *parts, of_x = gradients(tile, layer, pull[rows], level[rows], wants_x)
        for total, part in zip(totals, parts, strict=True):
            if total is not None and part is not None:
                total += part
        if g_x is not None and of_x is not None:
            g_x[rows, steps] = of_x.permute(1, 2, 0).to(x.dtype)
    return [g_x, None, *totals]


def _plain(x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str) -> Tensor:
    """What `_Pooling` computes, by the plain function."""
    return plain_pooling(x.to(w.dtype), lengths, w[:-1].t(), w[-1], None if score is None else score[None], shift, leak)


def pool_in_tiles(
    x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Tensor:
    """The context, tile by tile, of the arguments that `pooling` takes.

    It computes in float32 at least, under autocast too: it stores nothing of the states' size, so halves win nothing.
    """
    device, wide = x.device.type, torch.promote_types(weight.dtype, torch.float32)
    out = autocast_inputs(x)[0].dtype
    with torch.autocast(device, enabled=False):
        w = torch.cat([weight, bias[:, None]], 1).t().to(wide).contiguous()
        score, shift = (None if part is None else part.flatten().to(wide) for part in (score, shift))
        return _Pooling.apply(x, lengths, w, score, shift, leak).to(out)


def _cannot_natively(x: Tensor, lengths: Tensor, weight: Tensor, *more: object) -> str | None:
    return no_native_code(x) or no_native_code(weight, *more)


def triton_pooling(*inputs: Any) -> Tensor:
    """The same in Triton's kernels, for a GPU; see `rtx.nn.kernels.triton`."""
    from rtx.nn.kernels.triton.pooling import triton_pooling  # needs Triton

    return triton_pooling(*inputs)


pooling = Operation(
    "pooling",
    {
        "triton": Kernel(triton_pooling, no_pooling, for_tests_alone),
        "native": Kernel(native_pooling, _cannot_natively),
        "fused": Kernel(pool_in_tiles, no_hand_written_gradient),
        "torch": Kernel(plain_pooling),
        "naive": Kernel(naive_pooling.contexts),
    },
    optional=("naive",),
)
"""`pooling(x, lengths, weight, bias, score, shift, leak)`: the context c (B, D) of sequences x (B, T, F).

The weights are those of h_t = LReLU(W_xh x_t + b_xh), (D, F) and (D,), and of its score, (1, D) and (1,), or None
and None for the mean; `leak` is a name of LEAKS. Padding is not read.
"""
