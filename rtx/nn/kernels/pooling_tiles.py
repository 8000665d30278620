"""A tile of feed-forward attention: some sequences for some steps, whose states live while it is worked on, no longer.

It is worked on in the fewest passes that eager torch can do it in.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.kernels.pooling_plain import FLOOR

ROWS = 2560  # steps of all sequences in a tile, about: their states fit a core's second cache


class Layer(NamedTuple):
    """What maps a step: w (F+1, D) with the bias last, w_hc (D,) and b_hc (1,) or None for the mean, and the leak.

    `room` (2, rows, D) is where a tile's states are put: to ask for new memory each time would cost as much.
    """

    w: Tensor
    score: Tensor | None
    shift: Tensor | None
    leak: str
    room: Tensor


def layer_for(w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str) -> Layer:
    """The layer, with room for a tile."""
    return Layer(w, score, shift, leak, w.new_empty(2, ROWS, w.shape[1]))


def tiles(
    x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"], dtype: torch.dtype
) -> Iterator[tuple[Int[Tensor, " G"], slice, Float[Tensor, "F+1 G N"]]]:
    """All real steps, a tile at a time: which sequences, which steps, and their inputs.

    The last row of the inputs is 1 where a step is real and 0 elsewhere. The longest sequences come first, so that a
    tile has little padding, and none has nothing else.
    """
    order = lengths.argsort(descending=True, stable=True)
    sizes = lengths[order].tolist()
    steps = min(ROWS, sizes[0])
    together = min(len(x), max(1, ROWS // steps))
    for rows, i in zip(order.split(together), range(0, len(x), together), strict=True):
        for start in range(0, sizes[i], steps):
            stop = min(start + steps, sizes[i])
            tile = x.new_ones(x.shape[2] + 1, len(rows), stop - start, dtype=dtype)
            tile[:-1] = x[rows, start:stop].permute(2, 0, 1)
            if sizes[i + len(rows) - 1] < stop:
                padding = torch.arange(start, stop, device=x.device) >= lengths[rows, None]
                tile.masked_fill_(padding, 0)  # a NaN in it would outlive a weight of zero
            yield rows, slice(start, stop), tile


def _states(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    """What goes into the leak, as slopes (G, N, D) only, and the states that come out of it."""
    before, slopes = layer.room[:, : x[0].numel()].unbind()
    torch.mm(x.flatten(1).t(), layer.w, out=before)
    if layer.leak == "printed":
        torch.ge(before, FLOOR, out=slopes)  # as numbers: they go into products
        before.clamp_(min=FLOOR)
    else:
        torch.gt(before, 0, out=slopes).clamp_(min=FLOOR)
        F.leaky_relu_(before, FLOOR)
    return slopes.view(*x.shape[1:], -1), before.view(*x.shape[1:], -1)


def _scores(h: Tensor, score: Tensor, shift: Tensor | None) -> Tensor:
    """a(h_t) = tanh(w_hc · h_t + b_hc), (G, N)."""
    return torch.mv(h.flatten(0, 1), score).add_(shift).tanh_().view(h.shape[:2])  # type: ignore[arg-type]


def sums(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    """Of a tile's inputs: each sequence's Σ exp(e_t), (G,), and Σ exp(e_t) h_t, (G, D)."""
    h = torch.mm(x.flatten(1).t(), layer.w, out=layer.room[0, : x[0].numel()])
    h = h.clamp_(min=FLOOR) if layer.leak == "printed" else F.leaky_relu_(h, FLOOR)
    h = h.view(*x.shape[1:], -1)
    mass = x[-1] if layer.score is None else _scores(h, layer.score, layer.shift).exp_().mul_(x[-1])
    return mass.sum(1), torch.bmm(mass[:, None], h).squeeze(1)


def gradients(x: Tensor, layer: Layer, pull: Tensor, level: Tensor, wants_x: bool) -> tuple[Tensor | None, ...]:
    """Those of w, w_hc, b_hc and x (F, G, N), where exp(e_t) h_t has the gradient `pull` (G, D), exp(e_t) -`level` (G).

    With slopes L and ∂/∂h = p · pull + s · w_hc, each sum over steps of L, p and x is one product for all units."""
    w, inputs = layer.w, x.shape[0]
    slopes, h = _states(x, layer)
    if layer.score is None:
        weights = x[None] * x[-1]  # (1, F+1, G, N)
    else:
        e = _scores(h, layer.score, layer.shift)
        mass = e.exp().mul_(x[-1])
        s = torch.bmm(h, pull[..., None]).squeeze(2).sub_(level[:, None]).mul_(mass).mul_(1 - e * e)
        weights = torch.stack([mass, s])[:, None] * x
    sums = torch.bmm(weights.flatten(0, 1).transpose(0, 1), slopes).unflatten(1, (-1, inputs))  # (G, 1 or 2, F+1, D)
    g_w = (sums[:, 0] * pull[:, None]).sum(0)
    g_x = _through(slopes, pull[:, None] * w[:-1], weights[0, -1]) if wants_x else None
    if layer.score is None:
        return g_w, None, None, g_x
    by_score, g_shift = sums[:, 1].sum(0), s.sum()
    # h is the slope times what goes in; the floor, where the printed slope is 0
    g_score = (w * by_score).sum(0) + (FLOOR * (g_shift - by_score[-1]) if layer.leak == "printed" else 0)
    if g_x is not None:
        g_x = g_x + _through(slopes, (layer.score * w[:-1]).expand(len(pull), -1, -1), s)
    return g_w + by_score * layer.score, g_score, g_shift, g_x


def _through(slopes: Tensor, w: Tensor, weights: Tensor) -> Tensor:
    """(F, G, N): what comes back to the inputs through each sequence's own w (G, F, D)."""
    return torch.bmm(w, slopes.transpose(1, 2)).transpose(0, 1) * weights
