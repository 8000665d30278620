"""A tile of feed-forward attention: some sequences for some steps, whose states live while it is worked on, no longer.

There are two ways to work on it. PRODUCTS is the fewest passes that eager torch can do it in. LOOPS is the plain
equations, which a compiler turns into loops that never store a state at all.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

FLOOR = 0.01

LEAKS: dict[str, Callable[[Tensor], Tensor]] = {
    "printed": lambda x: x.clamp(min=FLOOR),
    "coded": lambda x: F.leaky_relu(x, FLOOR),
}

# inductor stores what it counts as costly, and a state is costly by its count: this has it compute states again
NEVER_STORE = {name: 1000 for name in ("realize_reads_threshold", "realize_opcount_threshold")}
NEVER_STORE |= {"realize_acc_reads_threshold": 1000}


class Layer(NamedTuple):
    """What maps a step: w (F+1, D) with the bias last, w_hc (D,) and b_hc (1,) or None for the mean, and the leak.

    `room` (2, rows, D) is where PRODUCTS puts a tile's states: to ask for new memory each time would cost as much.
    """

    w: Tensor
    score: Tensor | None
    shift: Tensor | None
    leak: str
    room: Tensor


class Way(NamedTuple):
    """How a tile is worked on. Its inputs are x (F+1, G, N): the last row is 1 where a step is real and 0 elsewhere.

    Args:
        sums: of x and the layer: each sequence's Σ exp(e_t), (G,), and Σ exp(e_t) h_t, (G, D).
        gradients: of x, the layer, `pull` (G, D), `level` (G,) and whether that of x is wanted: the gradients of w,
            w_hc, b_hc, x (F, G, N) or None, where exp(e_t) h_t has the gradient `pull`, and exp(e_t) itself -`level`.
        rows: G · N, about.
        steps: N, at most.
        even: whether all tiles are of one size, zeros filling them up, for a compiler knows sizes in advance.
    """

    sums: Callable[[Tensor, Layer], tuple[Tensor, Tensor]]
    gradients: Callable[[Tensor, Layer, Tensor, Tensor, bool], tuple[Tensor | None, ...]]
    rows: int
    steps: int
    even: bool


def layer_for(way: Way, w: Tensor, score: Tensor | None, shift: Tensor | None, leak: str) -> Layer:
    """The layer, with room for a tile if this way needs it."""
    return Layer(w, score, shift, leak, w.new_empty(2, 0 if way.even else way.rows, w.shape[1]))


def tiles(
    x: Float[Tensor, "B T F"], lengths: Int[Tensor, "B"], way: Way, dtype: torch.dtype
) -> Iterator[tuple[Int[Tensor, "G"], slice, Tensor]]:
    """All real steps, a tile at a time: which sequences, which steps, and their inputs (F+1, G, N).

    The longest sequences come first, so that a tile has little padding, and none has nothing else.
    """
    order = lengths.argsort(descending=True, stable=True)
    sizes = lengths[order].tolist()
    steps = min(way.steps, 1 << (sizes[0] - 1).bit_length() if way.even else sizes[0])
    together = min(len(x), max(1, way.rows // steps))
    for rows, i in zip(order.split(together), range(0, len(x), together), strict=True):
        for start in range(0, sizes[i], steps):
            stop = min(start + steps, sizes[i])
            tile = x.new_ones(x.shape[2] + 1, len(rows), stop - start, dtype=dtype)
            tile[:-1] = x[rows, start:stop].permute(2, 0, 1)
            if sizes[i + len(rows) - 1] < stop:
                padding = torch.arange(start, stop, device=x.device) >= lengths[rows, None]
                tile.masked_fill_(padding, 0)  # a NaN in it would outlive a weight of zero
            room = (0, steps - tile.shape[2], 0, together - len(rows)) if way.even else (0, 0, 0, 0)
            yield rows, slice(start, stop), F.pad(tile, room) if any(room) else tile


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


def _loop_scores(h: Tensor, score: Tensor, shift: Tensor | None) -> Tensor:
    """The same."""
    return torch.tanh((h * score).sum(-1) + shift)  # type: ignore[operator]


def _sums(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    h = torch.mm(x.flatten(1).t(), layer.w, out=layer.room[0, : x[0].numel()])
    h = h.clamp_(min=FLOOR) if layer.leak == "printed" else F.leaky_relu_(h, FLOOR)
    h = h.view(*x.shape[1:], -1)
    mass = x[-1] if layer.score is None else _scores(h, layer.score, layer.shift).exp_().mul_(x[-1])
    return mass.sum(1), torch.bmm(mass[:, None], h).squeeze(1)


def _gradients(x: Tensor, layer: Layer, pull: Tensor, level: Tensor, wants_x: bool) -> tuple[Tensor | None, ...]:
    """With slopes L and ∂/∂h = p · pull + s · w_hc, each sum over steps of L, p and x is one product for all units."""
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


def _loop_states(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    before = sum(
        (x_f[..., None] * w_f for x_f, w_f in zip(x[1:], layer.w[1:], strict=True)), x[0, ..., None] * layer.w[0]
    )
    return before, LEAKS[layer.leak](before)


def _loop_sums(x: Tensor, layer: Layer) -> tuple[Tensor, Tensor]:
    _, h = _loop_states(x, layer)
    mass = x[-1]
    if layer.score is not None:
        mass = _loop_scores(h, layer.score, layer.shift).exp() * mass
    return mass.sum(1), (mass[..., None] * h).sum(1)


def _loop_gradients(x: Tensor, layer: Layer, pull: Tensor, level: Tensor, wants_x: bool) -> tuple[Tensor | None, ...]:
    before, h = _loop_states(x, layer)
    g_score = g_shift = g_x = None
    if layer.score is None:
        g_h = x[-1, ..., None] * pull[:, None]
    else:
        e = _loop_scores(h, layer.score, layer.shift)
        mass = e.exp() * x[-1]
        s = mass * ((h * pull[:, None]).sum(-1) - level[:, None]) * (1 - e * e)
        g_h = mass[..., None] * pull[:, None] + s[..., None] * layer.score
        g_score, g_shift = (s[..., None] * h).sum(1).sum(0), s.sum()
    passes = before >= FLOOR if layer.leak == "printed" else before > 0
    g_before = torch.where(passes, g_h, g_h * (0 if layer.leak == "printed" else FLOOR))
    g_w = torch.stack([(x_f[..., None] * g_before).sum(1).sum(0) for x_f in x])
    if wants_x:
        g_x = torch.stack([(g_before * w_f).sum(-1) for w_f in layer.w[:-1]])
    return g_w, g_score, g_shift, g_x


PRODUCTS = Way(_sums, _gradients, rows=2560, steps=2560, even=False)
"""For eager torch: a tile's states fit a core's second cache."""


LOOPS = Way(_loop_sums, _loop_gradients, rows=12800, steps=512, even=True)
"""For a compiler; in eager torch the slower of the two."""


@cache
def compiled_loops() -> Way:
    """LOOPS through the compiler, which runs at the first tile of a size, for seconds."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(function, dynamic=False, options=dict(NEVER_STORE))

    return LOOPS._replace(sums=compiled(_loop_sums), gradients=compiled(_loop_gradients))
