"""Feed-forward attention's context, c = Σ α_t h_t, without ever holding the states of all steps.

Raffel & Ellis (2015), Eq. 1-2. A score is a tanh, between -1 and 1, so the softmax needs no running maximum: a pass
over the steps adds up exp(e_t) and exp(e_t) h_t, and the way back computes the states once more.
"""

import os
from shutil import which
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn import naive_pooling
from rtx.nn.kernels.derivatives import gradients_again
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.obstacles import no_hand_written_gradient
from rtx.nn.kernels.pooling_tiles import LEAKS, PRODUCTS, Layer, Way, compiled_loops, layer_for, tiles
from rtx.nn.kernels.precision import autocast_inputs
from rtx.nn.padding import real_positions


def states(
    x: Float[Tensor, "B T F"], real: Bool[Tensor, "B T"], weight: Float[Tensor, "D F"], bias: Tensor, leak: str
) -> Float[Tensor, "B T D"]:
    """h_t = LReLU(W_xh x_t + b_xh)."""
    # zeros for the padding first: a NaN in it would outlive a weight of zero
    return LEAKS[leak](F.linear(torch.where(real[..., None], x, 0), weight, bias))


def scores(h: Float[Tensor, "*B D"], score: Float[Tensor, "1 D"] | None, shift: Tensor | None) -> Float[Tensor, "*B"]:
    """a(h_t) = tanh(w_hc · h_t + b_hc); equal ones for the mean, which is the softmax of any constant."""
    return h.new_zeros(h.shape[:-1]) if score is None else torch.tanh(F.linear(h, score, shift)).squeeze(-1)


def shares(
    h: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"], score: Tensor | None, shift: Tensor | None
) -> Float[Tensor, "B T"]:
    """α_t, the softmax over the real steps of their scores."""
    return scores(h, score, shift).masked_fill(~real, -torch.inf).softmax(-1).to(h.dtype)


def _plain(
    x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Tensor:
    real = real_positions(lengths, x.shape[1])
    h = states(x, real, weight, bias, leak)
    # Eq. (1) or (2): c = Σ α_t h_t
    return (shares(h, real, score, shift)[:, None] @ h).squeeze(1)


class _Pooling(torch.autograd.Function):
    """c (B, D) of x (B, T, F) and w (F+1, D), w_hc (D,), b_hc (1,): it keeps c, the sum of exp(e_t), and these."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, *how: Any
    ) -> Tensor:
        leak, way = how
        layer = layer_for(way, w, score, shift, leak)
        mass, total = w.new_zeros(len(x)), w.new_zeros(len(x), w.shape[1])
        for rows, _, tile in tiles(x, lengths, way, w.dtype):
            of_mass, of_total = way.sums(tile, layer)
            mass[rows], total[rows] = mass[rows] + of_mass[: len(rows)], total[rows] + of_total[: len(rows)]
        c = total / mass[:, None]
        ctx.save_for_backward(x, lengths, w, score, shift, c, mass)
        ctx.how = how
        return c

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, lengths, w, score, shift, c, mass = ctx.saved_tensors
        leak, way = ctx.how
        with torch.autocast(x.device.type, enabled=False):
            if torch.is_grad_enabled():  # they are to be differentiated again
                return gradients_again(_plain_pooling, (x, lengths, w, score, shift, leak, way), gradients)
            pull = gradients[0] / mass[:, None]
            layer = layer_for(way, w, score, shift, leak)
            found = _add_up(x, lengths, layer, way, pull, (pull * c).sum(1), ctx.needs_input_grad[0])
            return *found, None, None


def _add_up(
    x: Tensor, lengths: Tensor, layer: Layer, way: Way, pull: Tensor, level: Tensor, wants_x: bool
) -> list[Tensor | None]:
    """The gradients of x, lengths, w, w_hc and b_hc, tile by tile."""
    g_x = torch.zeros_like(x) if wants_x else None
    totals = [None if part is None else torch.zeros_like(part) for part in layer[:3]]
    for rows, steps, tile in tiles(x, lengths, way, layer.w.dtype):
        room = (0, 0, 0, tile.shape[1] - len(rows))
        *parts, of_x = way.gradients(tile, layer, F.pad(pull[rows], room), F.pad(level[rows], room[2:]), wants_x)
        for total, part in zip(totals, parts, strict=True):
            if total is not None and part is not None:
                total += part
        if g_x is not None and of_x is not None:
            g_x[rows, steps] = of_x[:, : len(rows), : steps.stop - steps.start].permute(1, 2, 0).to(x.dtype)
    return [g_x, None, *totals]


def _plain_pooling(
    x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str, way: Way
) -> Tensor:
    """What `_Pooling` computes, by the plain function."""
    return _plain(x.to(w.dtype), lengths, w[:-1].t(), w[-1], None if score is None else score[None], shift, leak)


def pool_in_tiles(
    way: Way,
    x: Tensor,
    lengths: Tensor,
    weight: Tensor,
    bias: Tensor,
    score: Tensor | None,
    shift: Tensor | None,
    leak: str,
) -> Tensor:
    """The context, tile by tile, of the arguments that `pooling` takes.

    It computes in float32 at least, under autocast too: it stores nothing of the states' size, so halves win nothing.
    """
    device, wide = x.device.type, torch.promote_types(weight.dtype, torch.float32)
    out = autocast_inputs(x)[0].dtype
    with torch.autocast(device, enabled=False):
        w = torch.cat([weight, bias[:, None]], 1).t().to(wide).contiguous()
        score, shift = (None if part is None else part.flatten().to(wide) for part in (score, shift))
        return _Pooling.apply(x, lengths, w, score, shift, leak, way).to(out)


def _compiler_obstacle(x: Tensor, *_: object) -> str | None:
    return no_hand_written_gradient(x) or (None if which(os.environ.get("CXX", "g++")) else "there is no C++ compiler")


pooling = Operation(
    "pooling",
    {
        "compiled": Kernel(lambda *inputs: pool_in_tiles(compiled_loops(), *inputs), _compiler_obstacle),
        "fused": Kernel(lambda *inputs: pool_in_tiles(PRODUCTS, *inputs), lambda x, *_: no_hand_written_gradient(x)),
        "torch": Kernel(_plain),
        "naive": Kernel(naive_pooling.contexts),
    },
    optional=("compiled", "naive"),
)
"""`pooling(x, lengths, weight, bias, score, shift, leak)`: the context c (B, D) of sequences x (B, T, F).

The weights are those of h_t = LReLU(W_xh x_t + b_xh), (D, F) and (D,), and of its score, (1, D) and (1,), or None
and None for the mean; `leak` is a name of LEAKS. Padding is not read.
"""
