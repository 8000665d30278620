"""The character Transformer: separate segments, and learned positions in every layer.

Al-Rfou et al. (2019), Character-Level Language Modeling with Deeper Self-Attention.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models.backbone import Card, CausalModel
from rtx.nn import FeedForward, Residual
from rtx.nn.segment_memory import SegmentAttention, place_in_segment
from rtx.nn.streaming import State, read_through, readers, split
from rtx.nn.validate import check_fraction, check_positive

WINDOWS = 64  # segments that `slide` computes at a time, for each sequence of the batch


class CharacterTransformer(CausalModel):
    """A Transformer that reads a text in segments which know nothing of one another.

    So it predicts the first positions of a segment from almost nothing (context fragmentation). `slide` evaluates
    without this problem, as the paper does, but computes a whole segment for each position.

    At the paper's size (d_model 512, segment 512) 12 layers have 40,949,760 parameters and 64 layers 218,398,720. With
    an embedding of 256 symbols that is not tied to the output, and the classifiers of `rtx.training.auxiliary_losses`,
    there are 44.2 M and 235.3 M. The paper says 44 M and 235 M.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        segment: S, number of positions in a segment.
        dropout: on the input, after each sublayer, on attention weights, in the feed-forward network.
        norm: "post", LayerNorm(x + sublayer(x)), or "pre", x + sublayer(LayerNorm(x)), without a LayerNorm on top.
    """

    separate_segments = True
    auxiliary_losses = ("layers",)

    def __init__(
        self, d_model: int, layers: int, heads: int, segment: int = 512, dropout: float = 0.0, norm: str = "post"
    ) -> None:
        super().__init__()
        self.d_model, self.segment = check_positive("d_model", d_model), check_positive("segment", segment)
        check_positive("layers", layers)

        def block() -> nn.Sequential:
            sublayers = [SegmentAttention(d_model, heads, segment, dropout), FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.positions = nn.Parameter(torch.randn(layers, segment, d_model) * d_model**-0.5)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.blocks = nn.ModuleList(block() for _ in range(layers))

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`, which continues the sequence that led to the state, if there is one."""
        if state is not None:
            return super().forward(x, state)
        return self._whole(self._top(self._segments(x)), x)

    def hidden(self, x: Float[Tensor, "B T D"]) -> list[Float[Tensor, "B T D"]]:
        """Return the outputs of all layers, from bottom to top, for the auxiliary losses."""
        return [self._whole(h, x) for h in self._layers(self._segments(x))]

    def slide(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Slide the segment by one position at a time: output t is the last of the segment x_{t-S+1} … x_t."""
        found = [self(x[:, : self.segment])]  # the first S outputs are those of one segment
        for first in range(1, x.shape[1] - self.segment + 1, WINDOWS):
            piece = x[:, first : first + WINDOWS + self.segment - 1]
            segments = piece.unfold(1, self.segment, 1).transpose(2, 3).flatten(0, 1)  # (B · WINDOWS, S, D)
            found.append(self._top(segments)[:, -1].unflatten(0, (x.shape[0], -1)))
        return torch.cat(found, 1)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The attention of every layer remembers the keys and values of its segment."""
        self.check_input(x)
        if x.shape[1] == 1:
            return self._read(x, state)
        read = place_in_segment(split(split(state, len(self.blocks))[0], 2)[0], self.segment)
        pieces = x[:, : self.segment - read], *x[:, self.segment - read :].split(self.segment, 1)
        outputs = []
        for piece in pieces[: 1 if pieces[-1].shape[1] == 0 else None]:
            y, state = self._read(piece, state)
            outputs.append(y)
        assert state is not None
        return torch.cat(outputs, 1), state

    def _read(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Read a piece of one segment."""
        before, after, x = split(state, len(self.blocks)), [], self.dropout(x)
        for positions, block, part in zip(self.positions, self.blocks, before, strict=True):
            count = place_in_segment(split(part, 2)[0], self.segment)
            x, part = read_through(readers(block.children()), x + positions[count : count + x.shape[1]], part)
            after.append(part)
        return x, tuple(after)

    def _segments(self, x: Tensor) -> Tensor:
        """Return (B, T, D) as (B · C, S, D), with zeros after the end."""
        self.check_input(x)
        S = min(self.segment, x.shape[1])
        return F.pad(x, (0, 0, 0, -x.shape[1] % S)).unflatten(1, (-1, S)).flatten(0, 1)

    @staticmethod
    def _whole(segments: Tensor, x: Tensor) -> Tensor:
        """Return (B · C, S, D) as (B, T, D)."""
        return segments.unflatten(0, (x.shape[0], -1)).flatten(1, 2)[:, : x.shape[1]]

    def _layers(self, x: Tensor) -> Iterator[Tensor]:
        x = self.dropout(x)
        for positions, block in zip(self.positions, self.blocks, strict=True):
            x = block(x + positions[: x.shape[1]])
            yield x

    def _top(self, x: Tensor) -> Tensor:
        """Return the output of the last layer, without keeping those below."""
        for y in self._layers(x):
            x = y
        return x


def receptive_field(segment: int = 512, **others: object) -> int:
    """Return that of a segment's last output: the segment."""
    return segment


CARD = Card(
    "character-transformer",
    CharacterTransformer,
    "Al-Rfou et al. (2019)",
    "T12, enwik8; heads as in T64",
    {"d_model": 512, "layers": 12, "heads": 2, "segment": 512},
    receptive_field,
)
