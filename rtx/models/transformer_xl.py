"""Transformer-XL: a Transformer that remembers the segment before, and scores keys by their distance.

Dai et al. (2019), Transformer-XL: Attentive Language Models beyond a Fixed-Length Context.
"""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn import FeedForward, Residual
from rtx.nn.relative import XLAttention
from rtx.nn.segment_memory import SegmentMemory
from rtx.nn.state import State, split, step_through
from rtx.nn.validate import check_choice, check_positive, check_sequence, check_step

BIASES = ("shared", "per layer")


class TransformerXL(nn.Module):
    """A stack of blocks: attention over memory and segment, and feed-forward, each with its residual and LayerNorm.

    The last position of a segment depends on S + (L - 1) S ⌈M / S⌉ + M inputs, S the segment and M the memory; with
    M = S, as the paper trains, (L + 1) S, of which gradients reach the last S. No parameter depends on either
    number: the paper evaluates with a longer memory than it trains with, and so does a second model that loads the
    first one's state dict.

    At the size of the paper's 12 layers for enwik8 (d_model 512, 8 heads) the backbone has 40,950,784 parameters, and
    41.1 M with an embedding of 204 symbols that is tied to the output and its bias; the paper says 41 M.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        segment: S, positions computed together; gradients end at its start.
        memory: M, positions before the segment that every layer sees; 0 gives separate segments.
        dropout: on the input, after each sublayer, on attention weights, in the feed-forward. The authors' code drops
            the sinusoids and the output as well.
        norm: "post" is the paper's order; "pre" x + sublayer(LayerNorm(x)), where what is remembered is the
            normalised input. The authors' code remembers x and normalises it again: the same outputs, but its
            LayerNorm gets gradients through the memory.
        biases: "shared" is the equation in §3.3, where u and v have no layer's index; with "per layer" each layer has
            its own, as in the authors' runs with `untie_r`.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        layers: int,
        heads: int,
        segment: int = 32,
        memory: int = 32,
        dropout: float = 0.0,
        norm: str = "post",
        biases: str = "shared",
    ) -> None:
        super().__init__()
        check_positive("layers", layers), check_choice("biases", biases, BIASES)
        attentions = [XLAttention(d_model, heads, dropout) for _ in range(layers)]
        if biases == "shared":
            for other in attentions[1:]:
                other.content_bias, other.position_bias = attentions[0].content_bias, attentions[0].position_bias

        def block(attention: XLAttention) -> nn.Sequential:
            sublayers = [SegmentMemory(attention, segment, memory), FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = d_model
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*map(block, attentions))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape, segment by segment; position t depends on positions up to t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """A piece of a stream, of any length, and the state behind it: pieces and steps may follow one another.

        Raises:
            ValueError: as `forward`, or if `state` is another model's or batch's.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        x, sublayers, after = self.dropout(x), self._sublayers(), []
        for layer, part in zip(sublayers, split(state, len(sublayers)), strict=True):
            if isinstance(layer.sublayer, SegmentMemory):
                after.append(layer.sublayer.after(layer.norm(x) if layer.order == "pre" else x, part))
                x = layer(x, part)
            else:
                after.append(())
                x = layer(x)
        return x, tuple(after)

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream, at a cost that memory + segment bound.

        The first step of a segment computes the memory's keys and values.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        return step_through(self._sublayers(), self.dropout(x), state)

    def _sublayers(self) -> list[Residual]:
        return [sublayer for block in self.blocks for sublayer in block.children()]  # type: ignore[misc]
