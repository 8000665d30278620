"""The Transformer's decoder half: attention to the past, with one of seven kinds of positions.

Vaswani et al. (2017), Attention Is All You Need; Shaw et al. (2018), Self-Attention with Relative Position
Representations. It is the baseline of Wang et al. (2019), Tables 1-4.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.models.backbone import Card, CausalModel
from rtx.nn import FeedForward, Residual, sinusoidal_positions
from rtx.nn.attention import keys_so_far
from rtx.nn.relative import attention_with
from rtx.nn.streaming import State, read_through, readers, split
from rtx.nn.validate import check_choice, check_fraction, check_positive

POSITIONS = ("sinusoidal", "scaled-sinusoidal", "learned", "relative", "rotary", "alibi", "none")


class Transformer(CausalModel):
    """A stack of blocks. Each has multi-head attention and a feed-forward network, with residuals.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        dropout: on the input with its positions, after each sublayer, on attention weights, in the feed-forward
            network.
        norm: "post", LayerNorm(x + sublayer(x)), or "pre", x + sublayer(LayerNorm(x)), here without a LayerNorm on top.
        position: "sinusoidal" adds sines and cosines of the position to the input. "scaled-sinusoidal" first multiplies
            the input by √D, as Vaswani et al. (§3.4) do with their embeddings. "learned" adds a row of a table.
            "relative" gives each attention Shaw's tables of clipped distances, "rotary" rotates its queries and keys,
            whose width must be even, and "alibi" lowers its scores with the distance. "none" adds nothing.
        max_length: rows of the table for "learned", and so the longest sequence. The other kinds have no limit.
        max_distance: k of "relative", the distance from which on all keys share vectors.
    """

    def __init__(
        self,
        d_model: int,
        layers: int,
        heads: int,
        dropout: float = 0.0,
        norm: str = "post",
        position: str = "sinusoidal",
        max_length: int = 512,
        max_distance: int = 16,
    ) -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        check_positive("layers", layers)
        check_positive("max_length", max_length), check_positive("max_distance", max_distance)
        self.position = check_choice("position", position, POSITIONS)

        def block() -> nn.Sequential:
            attention = attention_with(position, d_model, heads, max_distance, dropout)
            sublayers = [attention, FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        learned = position == "learned"
        self.table = nn.Parameter(torch.randn(max_length, d_model) * d_model**-0.5) if learned else None
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`. If a state is given, `x` continues the sequence that led to this state."""
        if state is not None:
            return super().forward(x, state)
        self.check_input(x)
        return self.blocks(self.dropout(self._with_positions(x, 0)))

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. Each attention remembers its keys and values."""
        self.check_input(x)
        sublayers = [sublayer for block in self.blocks for sublayer in block.children()]
        before = split(state, len(sublayers))
        return read_through(readers(sublayers), self.dropout(self._with_positions(x, keys_so_far(before[0]))), before)

    def _with_positions(self, x: Tensor, start: int) -> Float[Tensor, "B T D"]:
        """Add the positions start … start + T - 1, if there are any to add."""
        end = start + x.shape[1]
        if self.table is not None:
            if end > len(self.table):
                raise ValueError(f"x: expected at most max_length = {len(self.table)} learned positions, got {end}")
            return x + self.table[start:end]
        if self.position == "scaled-sinusoidal":
            x = x * self.d_model**0.5
        if self.position in ("sinusoidal", "scaled-sinusoidal"):
            x = x + sinusoidal_positions(x.shape[1], self.d_model, x, start)
        return x


CARD = Card(
    "transformer",
    Transformer,
    "Vaswani et al. (2017)",
    "Wang et al., Table 2",
    {"d_model": 160, "layers": 3, "heads": 4},
)
