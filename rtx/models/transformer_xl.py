"""Transformer-XL: a Transformer that remembers the segment before, and scores keys by their distance.

Dai et al. (2019), Transformer-XL: Attentive Language Models beyond a Fixed-Length Context.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from rtx.models.backbone import Card, CausalModel
from rtx.nn import FeedForward, Residual
from rtx.nn.relative import XLAttention
from rtx.nn.segment_memory import SegmentMemory
from rtx.nn.streaming import State, read_through, readers, split
from rtx.nn.validate import check_positive


class TransformerXL(CausalModel):
    """A stack of blocks. Each has attention over memory and segment, and a feed-forward network, with residuals.

    The last position of a segment depends on S + (L - 1) S ⌈M / S⌉ + M inputs, with segment S and memory M. With M = S,
    as in the paper's training, these are (L + 1) S inputs, and gradients reach the last S of them. No parameter depends
    on S or M. So a second model with a longer memory can load the state dict, as in the paper's evaluation.

    At the size of the paper's 12 layers for enwik8 (d_model 512, 8 heads) the backbone has 40,950,784 parameters. With
    an embedding of 204 symbols, which is tied to the output, there are 41.1 M. The paper says 41 M.

    All layers share u and v, because these have no layer index in the equation of §3.3. In the authors' runs with
    `untie_r` each layer has its own.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        segment: S, number of positions that are computed together; gradients end at its start.
        memory: M, number of positions before the segment that every layer sees. With 0 no segment sees another; `slide`
            returns what `forward` does.
        dropout: on the input, after each sublayer, on attention weights, in the feed-forward network. The authors'
            code also drops the sinusoids and the output. Its attention weights have a rate of their own, which is 0 in
            the runs of 12 layers on enwik8.
        norm: "post" is the paper's order. "pre" is x + sublayer(LayerNorm(x)), and the memory holds the normalised
            input. The authors' code remembers x and normalises it again. The outputs are the same, but its LayerNorm
            gets gradients through the memory.
    """

    stateful = True

    def __init__(
        self,
        d_model: int,
        layers: int,
        heads: int,
        segment: int = 32,
        memory: int = 32,
        dropout: float = 0.0,
        norm: str = "post",
    ) -> None:
        super().__init__()
        check_positive("layers", layers)
        attentions = [XLAttention(d_model, heads, dropout) for _ in range(layers)]

        def block(attention: XLAttention) -> nn.Sequential:
            sublayers = [SegmentMemory(attention, segment, memory), FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = check_positive("d_model", d_model)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*map(block, attentions))
        self.register_load_state_dict_post_hook(_share)
        _share(self)

    def _apply(self, *arguments: Any, **options: Any) -> nn.Module:
        super()._apply(*arguments, **options)  # on the meta device this makes several parameters of a shared one
        _share(self)
        return self

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T D"]:
        """Return the outputs for `x`, which continues the sequence that led to the state, if there is one."""
        self.check_input(x)
        x = self.dropout(x)
        for block, part in zip(self.blocks, split(state, 2 * len(self.blocks))[::2], strict=True):
            attention, feed_forward = block.children()
            x = feed_forward(attention(x, part))
        return x

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream, of any length. The cost of a position is bounded by memory + segment."""
        self.check_input(x)
        sublayers = (sublayer for block in self.blocks for sublayer in block.children())
        return read_through(readers(sublayers), self.dropout(x), state)


def _share(model: TransformerXL, *_: object) -> None:
    """Give all layers the same u and v, also after `load_state_dict(assign=True)`."""
    layers = [layer for layer in model.modules() if type(layer) is XLAttention]
    for layer in layers[1:]:
        layer.content_bias, layer.position_bias = layers[0].content_bias, layers[0].position_bias


def receptive_field(layers: int, segment: int = 32, memory: int = 32, **others: object) -> int:
    """Return that of a segment's last output: each layer sees a memory further back than the layer above."""
    return segment + (layers - 1) * segment * -(-memory // segment) + memory


CARD = Card(
    "transformer-xl",
    TransformerXL,
    "Dai et al. (2019)",
    "Table 2, enwik8, 12 layers",
    {"d_model": 512, "layers": 12, "heads": 8, "segment": 512, "memory": 512},
    receptive_field,
)
