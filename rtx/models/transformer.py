"""The Transformer's decoder-only half: attention to the past, told where it is in one of four ways.

Vaswani et al. (2017), Attention Is All You Need; Shaw et al. (2018), Self-Attention with Relative Position
Representations; the baseline of Wang et al. (2019), Tables 1-4.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn import FeedForward, MultiHeadAttention, RelativeAttention, Residual, sinusoidal_positions
from rtx.nn.state import State, step_through, steps_so_far
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_sequence, check_step

POSITIONS = ("sinusoidal", "learned", "relative", "none")


class Transformer(nn.Module):
    """A stack of blocks: multi-head attention and feed-forward, each with its residual and LayerNorm.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        dropout: on the input with its positions, after each sublayer, on attention weights, in the feed-forward.
        norm: "post", LayerNorm(x + sublayer(x)), or "pre", x + sublayer(LayerNorm(x)).
        position: "sinusoidal" adds sines and cosines of the position to the input; "learned" adds a row of a table;
            "relative" gives each attention Shaw's tables of clipped distances; "none" adds nothing.
        max_length: rows of the table of "learned" positions, and so the longest sequence. The others have none.
        max_distance: k of "relative", the greatest distance with vectors of its own; farther keys share its vectors.

    Raises:
        ValueError: if an argument is out of its range.
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
        check_positive("layers", layers)
        check_positive("max_length", max_length), check_positive("max_distance", max_distance)
        self.position = check_choice("position", position, POSITIONS)

        def attention() -> MultiHeadAttention:
            if position == "relative":
                return RelativeAttention(d_model, heads, max_distance, dropout)
            return MultiHeadAttention(d_model, heads, dropout)

        def block() -> nn.Sequential:
            sublayers = [attention(), FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = check_positive("d_model", d_model)
        learned = position == "learned"
        self.table = nn.Parameter(torch.randn(max_length, d_model) * d_model**-0.5) if learned else None
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, is empty, or is longer than the table of
                learned positions.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        return self.blocks(self.dropout(self._placed(x, 0)))

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream: each attention remembers the keys and values so far.

        Raises:
            ValueError: if `x` is not (B, D), `state` is another model's or batch's, or the table of learned
                positions has come to its end.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        start = steps_so_far(state) if self.position in ("sinusoidal", "learned") else 0  # a fixed cache cannot say
        placed = self.dropout(self._placed(x[:, None], start).squeeze(1))
        return step_through((sublayer for block in self.blocks for sublayer in block.children()), placed, state)

    def _placed(self, x: Tensor, start: int) -> Tensor:
        """(B, T, D), with the positions start … start + T - 1 added where they are."""
        end = start + x.shape[1]
        if self.table is not None:
            if end > len(self.table):
                raise ValueError(f"x: expected at most max_length = {len(self.table)} learned positions, got {end}")
            return x + self.table[start:end]
        if self.position == "sinusoidal":
            return x + sinusoidal_positions(x.shape[1], self.d_model, x, start)
        return x
