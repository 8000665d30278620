"""The character Transformer: separate segments, and positions learned anew for every layer.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn import FeedForward, MultiHeadAttention, Residual
from rtx.nn.state import State, empty_cache, parts, step_through
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step


class CharacterTransformer(nn.Module):
    """A Transformer that reads a text in segments which know nothing of one another.

    So a segment's first positions are predicted from next to nothing: context fragmentation. `slide` evaluates
    without it, as the paper does, at the price of a whole segment for each position.

    At the paper's size (d_model 512, segment 512) 12 and 64 layers have 40,949,760 and 218,398,720 parameters; with
    an embedding of 256 symbols and the classifiers of `rtx.nn.auxiliary_losses`, one for each layer and each of two
    targets, 44.2 M and 235.3 M: the published 44 M and 235 M.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        segment: S, positions in a segment.
        dropout: on the input, after each sublayer, on attention weights, in the feed-forward.
        norm: "post", LayerNorm(x + sublayer(x)), or "pre", x + sublayer(LayerNorm(x)).

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self, d_model: int, layers: int, heads: int, segment: int = 512, dropout: float = 0.0, norm: str = "post"
    ) -> None:
        super().__init__()
        self.d_model, self.segment = check_positive("d_model", d_model), check_positive("segment", segment)
        check_positive("layers", layers)

        def block() -> nn.Sequential:
            sublayers = [MultiHeadAttention(d_model, heads, dropout), FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.positions = nn.Parameter(torch.randn(layers, segment, d_model) * d_model**-0.5)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.blocks = nn.ModuleList(block() for _ in range(layers))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on its segment up to t.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        return self._whole(self._top(self._segments(x)), x)

    def hidden(self, x: Float[Tensor, "B T D"]) -> list[Float[Tensor, "B T D"]]:
        """The output of every layer, bottom to top: what the auxiliary losses take.

        Raises:
            ValueError: as `forward`.
        """
        return [self._whole(h, x) for h in self._layers(self._segments(x))]

    def slide(self, x: Float[Tensor, "B T D"], windows: int = 64) -> Float[Tensor, "B T D"]:
        """Evaluation sliding by one: output t is the last of the segment x_{t-S+1} … x_t, or of x_1 … x_t.

        Args:
            x: the sequence.
            windows: segments computed at a time, for each sequence of the batch.

        Raises:
            ValueError: as `forward`, or if `windows` is below 1.
        """
        check_positive("windows", windows)
        found = [self(x[:, : self.segment])]  # the first S outputs are those of one segment
        for first in range(1, x.shape[1] - self.segment + 1, windows):
            piece = x[:, first : first + windows + self.segment - 1]
            segments = piece.unfold(1, self.segment, 1).transpose(2, 3).flatten(0, 1)  # (B · windows, S, D)
            found.append(self._top(segments)[:, -1].unflatten(0, (x.shape[0], -1)))
        return torch.cat(found, 1)

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream: each attention remembers the keys and values of its segment.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=self.positions)
        count, before = self._checked(state)
        after, x = [], self.dropout(x)
        for positions, block, part in zip(self.positions, self.blocks, before, strict=True):
            x, part = step_through(block.children(), x + positions[count], part)
            after.append(part)
        if count + 1 == self.segment:  # the next one knows nothing of this one
            return x, (0, *((empty_cache(cache.keys), none) for cache, none in after))
        return x, (count + 1, *after)

    def _segments(self, x: Tensor) -> Tensor:
        """(B, T, D) as (B · C, S, D), with zeros behind the last."""
        check_sequence("x", x, self.d_model, like=self.positions)
        S = min(self.segment, x.shape[1])
        return F.pad(x, (0, 0, 0, -x.shape[1] % S)).unflatten(1, (-1, S)).flatten(0, 1)

    @staticmethod
    def _whole(segments: Tensor, x: Tensor) -> Tensor:
        """(B · C, S, D) as (B, T, D) again."""
        return segments.unflatten(0, (x.shape[0], -1)).flatten(1, 2)[:, : x.shape[1]]

    def _layers(self, x: Tensor) -> Iterator[Tensor]:
        x = self.dropout(x)
        for positions, block in zip(self.positions, self.blocks, strict=True):
            x = block(x + positions[: x.shape[1]])
            yield x

    def _top(self, x: Tensor) -> Tensor:
        """The last layer's output; those below it are let go as soon as they are read."""
        for y in self._layers(x):
            x = y
        return x

    def _checked(self, state: State | None) -> tuple[int, tuple[State | None, ...]]:
        layers = len(self.blocks)
        if state is None:
            return 0, (None,) * layers
        count, *before = parts(state) or (None,)
        if not isinstance(count, int) or not 0 <= count < self.segment or len(before) != layers:
            raise ValueError(
                f"state: expected a place in a segment of {self.segment} and {layers} layers, "
                f"got {count if isinstance(count, int) else type(count).__name__} and {len(before)} layers"
            )
        return count, tuple(before)
