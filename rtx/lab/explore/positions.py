"""Position lab: sinusoids, Shaw's clipped distances and Transformer-XL's four terms, taken apart.

Vaswani et al. (2017), §3.5; Shaw et al. (2018), Eq. 3-5; Dai et al. (2019), §3.3.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.lab.explore.page import Page
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
        table = sinusoidal_positions(x.shape[1], width)
        queries, _ = _heads(shaw, x)
        terms = xl.terms(*_heads(xl, x))
        data = {
            "sinusoids": table,
            # Shaw et al. (2018), Eq. (4): what each distance adds to a query's scores, the distance 0 first
            "distances": _past((queries @ shaw.key_table.T / queries.shape[-1] ** 0.5)[0, 0].flip(-1)),
            "terms": _past(torch.stack([terms[name][0, 0] for name in TERMS], -1)),
        }
    clip = min(4, shaw.clip)
    switches: dict[str, Any] = dict.fromkeys(TERMS, True)
    return Page(
        "positions.js",
        data,
        "Shaw's distances with k = 1 and more; then Transformer-XL with (a) alone, with (d) alone: which knows order?",
        title="How does it know where it is?",
        encoding="Transformer-XL" if isinstance(layer, XLAttention) else "Shaw's distances" if layer else "sinusoids",
        position=x.shape[1] - 1,
        clip=clip,
        **switches,
    )


def _past(rows: Tensor) -> list[Tensor]:
    """Of each row what a causal query sees."""
    return [row[: t + 1] for t, row in enumerate(rows)]


def _drawn_xl(width: int) -> XLAttention:
    layer = XLAttention(width, 1)
    for bias in (layer.content_bias, layer.position_bias):
        bias.normal_()
    return layer


def _heads(layer: MultiHeadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    """The queries and keys of all heads."""
    x = x.to(layer.query.weight)
    return layer.split(layer.query(x)), layer.split(layer.key(x))
