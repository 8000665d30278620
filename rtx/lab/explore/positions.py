"""Position lab: sinusoids, Shaw's clipped distances and Transformer-XL's four terms, taken apart.

Vaswani et al. (2017), §3.5; Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3.
"""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from rtx.lab.explore.page import Page
from rtx.lab.plots import new_figure, whole_numbers
from rtx.lab.seeded import seeded
from rtx.nn import MultiHeadAttention, RelativeAttention, sinusoidal_positions
from rtx.nn.relative import XLAttention
from rtx.nn.validate import check_sequence

WIDTH, LENGTH, LONGEST = 32, 32, 64
TERMS = ("content", "content_position", "global_content", "global_position")


def positions(layer: MultiHeadAttention | None = None, x: Float[Tensor, "1 T D"] | None = None) -> Page:
    """How positions look and what scores make of them, with controls `encoding`, `position`, and `clip` or four terms.

    Args:
        layer: a `RelativeAttention` or `XLAttention` of your own, trained or not, such as
            `model.blocks[0][0].sublayer.attention` of a Transformer-XL; takes the place of one drawn at random, in
            which the biases u and v are as large as queries, so that they can be seen. Its first head is shown.
        x: what the layer reads, at most 64 positions; 32 of noise if not given.

    Raises:
        ValueError: if the layer is neither, or `x` is not one sequence of its width.
    """
    if layer is not None and not isinstance(layer, XLAttention | RelativeAttention):
        raise ValueError(f"layer: expected a RelativeAttention or an XLAttention, got {type(layer).__name__}")
    width = WIDTH if layer is None else layer.d_model
    x = torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(0)) if x is None else x
    check_sequence("x", x, width)
    if len(x) != 1 or not 2 <= x.shape[1] <= LONGEST:
        raise ValueError(f"x: expected one sequence of 2 to {LONGEST} positions, got {tuple(x.shape)}")
    with seeded(0), torch.no_grad():
        shaw = layer if isinstance(layer, RelativeAttention) else RelativeAttention(width, 1, clip=16)
        xl = layer if isinstance(layer, XLAttention) else _drawn_xl(width)
        data = {"length": x.shape[1], "width": width}
        data |= {"shaw": _shaw(shaw, x), "xl": _xl(xl, x)}  # type: ignore[dict-item]
    clip = min(4, shaw.clip)
    terms: dict[str, Any] = dict.fromkeys(TERMS, True)
    return Page(
        Path(__file__).with_name("positions.js"),
        data,
        _still(x.shape[1], width),
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


def _head(layer: MultiHeadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    """The queries and keys of the first head."""
    K, x = layer.d_model // layer.heads, x.to(layer.query.weight)
    return layer.query(x)[0, :, :K], layer.key(x)[0, :, :K]


def _shaw(layer: RelativeAttention, x: Tensor) -> dict[str, Tensor]:
    return {"queries": _head(layer, x)[0], "vectors": layer.key_table[: layer.clip + 1]}


def _xl(layer: XLAttention, x: Tensor) -> dict[str, Tensor]:
    queries, keys = _head(layer, x)
    weight, u, v = layer.distance.weight[: keys.shape[1]], layer.content_bias[0, 0], layer.position_bias[0, 0]
    return {"queries": queries, "keys": keys, "weight": weight, "u": u, "v": v}


def _still(length: int, width: int) -> Figure:
    """The sinusoids, and their products."""
    table = sinusoidal_positions(length, width)
    figure, axes = new_figure(8, 3.4, columns=2)
    for ax, values, title, x in (
        (axes[0], table, "sinusoids", "number i of D"),
        (axes[1], table @ table.T / (width / 2), "their products, divided by D / 2", "position s"),
    ):
        extent = (0.5, values.shape[1] + 0.5, length + 0.5, 0.5)
        image = ax.imshow(values.numpy(), extent=extent, aspect="auto", cmap="PuOr_r", vmin=-1, vmax=1)
        ax.set(title=title, xlabel=x, ylabel="position t")
        whole_numbers(ax.xaxis, ax.yaxis)
    figure.colorbar(image, ax=axes)
    return figure
