"""Feed-forward attention's pooling in torch, tile by tile, with a backward pass of its own.

A tile is a group of sequences for a range of steps. Only the states of one tile exist at a time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.ops.gradients import autocast_inputs, first_derivatives_only
from rtx.nn.ops.pooling.torch import FLOOR, SMALLEST

ROWS = 2560  # steps of all sequences in a tile, so that their states fit a core's second-level cache


class Layer(NamedTuple):
    """The parameters: w (F+1, D) with the bias as its last row, w_hc (D,) and b_hc (1,) or None, and the leak.

    `room` (2, ROWS, D) is memory for the states of a tile, because allocating it for each tile costs time.
    """

    w: Tensor
    score: Tensor | None
    shift: Tensor | None
    leak: str
    room: Tensor


def blocked_pooling(
    x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Tensor:
    """Return the context, computed in float32 at least, also under autocast."""
    wide, out = torch.promote_types(weight.dtype, torch.float32), autocast_inputs(x)[0].dtype
    with torch.autocast("cpu", enabled=False):
        w = torch.cat([weight, bias[:, None]], 1).t().to(wide).contiguous()
        score, shift = (None if part is None else part.flatten().to(wide) for part in (score, shift))
        return _Pooling.apply(x, lengths, w, score, shift, leak).to(out)


class _Pooling(torch.autograd.Function):
    """Stores the inputs, the context c (B, D) and the sums of exp(e_t), (B,), and nothing of size T."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, lengths: Tensor, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
    ) -> Tensor:
        layer = Layer(w, score, shift, leak, w.new_empty(2, ROWS, w.shape[1]))
        mass, total = w.new_zeros(len(x)), w.new_zeros(len(x), w.shape[1])
        for rows, _, tile in _tiles(x, lengths, w.dtype):
            tile_mass, tile_total = _sums(tile, layer)
            mass[rows], total[rows] = mass[rows] + tile_mass, total[rows] + tile_total
        mass.clamp_(min=SMALLEST)  # an empty sequence has the context 0
        c = total / mass[:, None]
        ctx.save_for_backward(x, lengths, w, score, shift, c, mass)
        ctx.leak = leak
        return c

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, lengths, w, score, shift, c, mass = ctx.saved_tensors
        first_derivatives_only("pooling", gradients)
        with torch.autocast("cpu", enabled=False):
            layer = Layer(w, score, shift, ctx.leak, w.new_empty(2, ROWS, w.shape[1]))
            pull = gradients[0] / mass[:, None]
            level = (pull * c).sum(1)
            g_x = torch.zeros_like(x) if ctx.needs_input_grad[0] else None
            totals = [None if part is None else torch.zeros_like(part) for part in layer[:3]]
            for rows, steps, tile in _tiles(x, lengths, w.dtype):
                *parts, of_x = _gradients(tile, layer, pull[rows], level[rows], g_x is not None)
                for total, part in zip(totals, parts, strict=True):
                    if total is not None and part is not None:
                        total += part
                if g_x is not None and of_x is not None:
                    g_x[rows, steps] = of_x.permute(1, 2, 0).to(x.dtype)
            return g_x, None, *totals, None


def _tiles(
    x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"], dtype: torch.dtype
) -> Iterator[tuple[Int[Tensor, " G"], slice, Float[Tensor, "F+1 G N"]]]:
    """Yield all real steps, a tile at a time: which sequences, which steps, and their inputs.

    The last row of the inputs is 1 where a step is real and 0 elsewhere. The longest sequences come first, so that
    sequences of similar length share a tile and there is little padding.
    """
    order = lengths.argsort(descending=True, stable=True)
    sizes = lengths[order].tolist()
    steps = max(1, min(ROWS, sizes[0]))
    together = min(len(x), max(1, ROWS // steps))
    for rows, i in zip(order.split(together), range(0, len(x), together), strict=True):
        for start in range(0, sizes[i], steps):
            stop = min(start + steps, sizes[i])
            tile = x.new_ones(x.shape[2] + 1, len(rows), stop - start, dtype=dtype)
            tile[:-1] = x[rows, start:stop].permute(2, 0, 1)
            if sizes[i + len(rows) - 1] < stop:
                padding = torch.arange(start, stop, device=x.device) >= lengths[rows, None]
                tile.masked_fill_(padding, 0)  # a NaN there would survive a weight of zero
            yield rows, slice(start, stop), tile


def _states(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    """Return the slopes of the leak and the states, (G, N, D) each."""
    before, slopes = layer.room[:, : x[0].numel()].unbind()
    torch.mm(x.flatten(1).t(), layer.w, out=before)
    if layer.leak == "printed":
        torch.ge(before, FLOOR, out=slopes)
        before.clamp_(min=FLOOR)
    else:
        torch.gt(before, 0, out=slopes).clamp_(min=FLOOR)
        F.leaky_relu_(before, FLOOR)
    return slopes.view(*x.shape[1:], -1), before.view(*x.shape[1:], -1)


def _scores(h: Tensor, layer: Layer) -> Tensor:
    """Return a(h_t) = tanh(w_hc · h_t + b_hc), (G, N)."""
    assert layer.score is not None and layer.shift is not None
    return torch.mv(h.flatten(0, 1), layer.score).add_(layer.shift).tanh_().view(h.shape[:2])


def _sums(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    """Return Σ exp(e_t), (G,), and Σ exp(e_t) h_t, (G, D), over the steps of a tile."""
    _, h = _states(x, layer)
    mass = x[-1] if layer.score is None else _scores(h, layer).exp_().mul_(x[-1])
    return mass.sum(1), torch.bmm(mass[:, None], h).squeeze(1)


def _gradients(x: Tensor, layer: Layer, pull: Tensor, level: Tensor, wants_x: bool) -> tuple[Tensor | None, ...]:
    """Return a tile's gradients of w, w_hc, b_hc and x (F, G, N).

    Here exp(e_t) h_t has the gradient `pull` (G, D) and exp(e_t) the gradient -`level` (G,). A state has the gradient
    p_t pull + s_t w_hc. Each sum over steps of slope, p_t or s_t, and x is one matrix product for all units.
    """
    w, inputs = layer.w, x.shape[0]
    slopes, h = _states(x, layer)
    if layer.score is None:
        weights = x[None] * x[-1]  # (1, F+1, G, N)
    else:
        e = _scores(h, layer)
        mass = e.exp().mul_(x[-1])
        s = torch.bmm(h, pull[..., None]).squeeze(2).sub_(level[:, None]).mul_(mass).mul_(1 - e * e)
        weights = torch.stack([mass, s])[:, None] * x
    sums = torch.bmm(weights.flatten(0, 1).transpose(0, 1), slopes).unflatten(1, (-1, inputs))  # (G, 1 or 2, F+1, D)
    g_w = (sums[:, 0] * pull[:, None]).sum(0)
    g_x = _through(slopes, pull[:, None] * w[:-1], weights[0, -1]) if wants_x else None
    if layer.score is None:
        return g_w, None, None, g_x
    by_score, g_shift = sums[:, 1].sum(0), s.sum()
    # a state is its slope times its input, plus the floor where the printed leak's slope is 0
    g_score = (w * by_score).sum(0) + (FLOOR * (g_shift - by_score[-1]) if layer.leak == "printed" else 0)
    if g_x is not None:
        g_x = g_x + _through(slopes, (layer.score * w[:-1]).expand(len(pull), -1, -1), s)
    return g_w + by_score * layer.score, g_score, g_shift, g_x


def _through(slopes: Tensor, w: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of the inputs, (F, G, N), through each sequence's own w (G, F, D)."""
    return torch.bmm(w, slopes.transpose(1, 2)).transpose(0, 1) * weights
