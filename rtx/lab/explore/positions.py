"""Position lab: sinusoids, Shaw's clipped distances and Transformer-XL's four terms, taken apart.

Vaswani et al. (2017), §3.5; Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from rtx.lab.explore.page import Page
from rtx.lab.plots import freeze, new_figure, whole_numbers
from rtx.lab.seeded import seeded
from rtx.nn import MultiHeadAttention, RelativeAttention, sinusoidal_positions
from rtx.nn.relative import XLAttention
from rtx.nn.validate import check_sequence

WIDTH, LENGTH, LONGEST = 32, 32, 64
TERMS = ("content", "content_position", "global_content", "global_position")


def positions(layer: MultiHeadAttention | None = None, x: Float[Tensor, "1 T D"] | None = None, head: int = 0) -> Page:
    """How positions look and what scores make of them, with controls `encoding`, `position`, and `clip` or four terms.

    Args:
        layer: a `RelativeAttention` or `XLAttention` of your own, trained or not, such as
            `model.blocks[0][0].sublayer.attention` of a Transformer-XL; takes the place of one drawn at random, in
            which the biases u and v are as large as queries, so that they can be seen.
        x: what the layer reads, at most 64 positions; 32 of noise if not given.
        head: which of the layer's heads, from 0.

    Raises:
        ValueError: if the layer is neither, has no such head, or `x` is not one sequence of its width.
    """
    if layer is not None and not isinstance(layer, XLAttention | RelativeAttention):
        raise ValueError(f"layer: expected a RelativeAttention or an XLAttention, got {type(layer).__name__}")
    if layer is not None and not 0 <= head < layer.heads:
        raise ValueError(f"head: expected 0 to {layer.heads - 1}, got {head}")
    width = WIDTH if layer is None else layer.d_model
    x = torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(0)) if x is None else x
    check_sequence("x", x, width)
    if len(x) != 1 or not 2 <= x.shape[1] <= LONGEST:
        raise ValueError(f"x: expected one sequence of 2 to {LONGEST} positions, got {tuple(x.shape)}")
    with seeded(0), torch.no_grad():
        shaw = layer if isinstance(layer, RelativeAttention) else RelativeAttention(width, 1, clip=16)
        xl = layer if isinstance(layer, XLAttention) else _drawn_xl(width)
        data = {"length": x.shape[1], "width": width}
        data |= {"shaw": _shaw(shaw, x, head), "xl": _xl(xl, x, head)}  # type: ignore[dict-item]
    clip = min(4, shaw.clip)
    terms: dict[str, Any] = dict.fromkeys(TERMS, True)
    return Page(
        Path(__file__).with_name("positions.js"),
        data,
        _still(data, clip),
        "Shaw's distances with k = 1 and more; then Transformer-XL with (a) alone, with (d) alone: which knows order?",
        title="How does it know where it is?",
        encoding="Transformer-XL" if isinstance(layer, XLAttention) else "Shaw's distances" if layer else "sinusoids",
        position=x.shape[1] - 1,
        clip=clip,
        **terms,
    )


def _drawn_xl(width: int) -> XLAttention:
    layer = XLAttention(width, 1)
    for bias in (layer.content_bias, layer.position_bias):
        bias.normal_()
    return layer


def _heads(layer: MultiHeadAttention, x: Tensor, head: int) -> tuple[Tensor, Tensor]:
    """The queries and keys of one head, or of the only one there is."""
    K, x = layer.d_model // layer.heads, x.to(layer.query.weight)
    part = slice(head % layer.heads * K, (head % layer.heads + 1) * K)
    return layer.query(x)[0, :, part], layer.key(x)[0, :, part]


def _shaw(layer: RelativeAttention, x: Tensor, head: int) -> dict[str, Tensor]:
    queries, _ = _heads(layer, x, head)
    return {"queries": queries, "vectors": layer.key_table[: layer.clip + 1]}


def _xl(layer: XLAttention, x: Tensor, head: int) -> dict[str, Tensor]:
    queries, keys = _heads(layer, x, head)
    head %= layer.heads
    weight = layer.distance.weight.unflatten(0, (layer.heads, -1))[head]
    u, v = layer.content_bias[head, 0], layer.position_bias[head, 0]
    return {"queries": queries, "keys": keys, "weight": weight, "u": u, "v": v}


def _still(data: dict[str, Any], clip: int) -> Figure:
    """The four encodings side by side, each in its own scale."""
    T, D = data["length"], data["width"]
    table = sinusoidal_positions(T, D)
    distance = torch.arange(T) - torch.arange(T)[:, None]
    shaw, xl = ({name: part.detach().float().cpu() for name, part in data[kind].items()} for kind in ("shaw", "xl"))
    per_row = shaw["queries"] @ shaw["vectors"].T / shaw["queries"].shape[1] ** 0.5
    clipped = per_row.gather(1, distance.clamp(-clip, 0) + len(shaw["vectors"]) - 1)
    by_distance = (xl["queries"] + xl["v"]) @ (table @ xl["weight"].T).T  # (T, distances)
    by_content = (xl["queries"] + xl["u"]) @ xl["keys"].T
    summed = (by_content + by_distance.gather(1, (-distance).clamp(min=0))) / xl["u"].shape[0] ** 0.5
    future = distance.numpy() > 0
    figure, axes = new_figure(9.6, 3.1, columns=4)
    _map(axes[0], table.numpy(), "sinusoids", "number i of D", "position t")
    _map(axes[1], (table @ table.T / (D / 2)).numpy(), "their products", "position s", "position t")
    _map(axes[2], np.ma.masked_where(future, clipped.numpy()), f"Shaw, k = {clip}", "key s", "query t")
    _map(axes[3], np.ma.masked_where(future, summed.numpy()), "Transformer-XL", "key s", "query t")
    freeze(figure)
    return figure


def _map(ax: Any, values: NDArray[np.floating[Any]], title: str, x: str, y: str) -> None:
    most = float(np.abs(values).max())
    rows, columns = values.shape
    limits, colours = (0.5, columns + 0.5, rows + 0.5, 0.5), {"cmap": "PuOr_r", "vmin": -most, "vmax": most}
    image = ax.imshow(values, extent=limits, aspect="auto", interpolation="nearest", **colours)
    ax.set(title=title, xlabel=x, ylabel=y, box_aspect=1)
    whole_numbers(ax.xaxis, ax.yaxis)
    ax.figure.colorbar(image, ax=ax, location="bottom", ticks=[-most, 0, most], format="%.1f", aspect=30)
