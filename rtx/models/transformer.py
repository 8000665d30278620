"""The Transformer's decoder-only half: attention to the past, told where it is by sinusoids.

Vaswani et al. (2017), Attention Is All You Need; the baseline of Wang et al. (2019), Tables 1-4.
"""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn import FeedForward, MultiHeadAttention, Residual, sinusoidal_positions
from rtx.nn.validate import check_choice, check_positive, check_sequence


class Transformer(nn.Module):
    """A stack of blocks: multi-head attention and feed-forward, each with its residual and LayerNorm.

    Args:
        d_model: D, width of every layer.
        layers: L, number of blocks.
        heads: H, attention heads; must divide D.
        dropout: on the input with its positions, after each sublayer, on attention weights, in the feed-forward.
        norm: "post", LayerNorm(x + sublayer(x)), or "pre", x + sublayer(LayerNorm(x)).
        position: "sinusoidal" adds sines and cosines of the position to the input; "none" adds nothing.

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
    ) -> None:
        super().__init__()
        check_positive("layers", layers)

        def block() -> nn.Sequential:
            sublayers = [MultiHeadAttention(d_model, heads, dropout), FeedForward(d_model, dropout=dropout)]
            return nn.Sequential(*(Residual(s, d_model, norm, dropout) for s in sublayers))

        self.d_model = d_model
        self.position = check_choice("position", position, ("sinusoidal", "none"))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        if self.position == "sinusoidal":
            x = x + sinusoidal_positions(x.shape[1], self.d_model, like=x)
        return self.blocks(self.dropout(x))
