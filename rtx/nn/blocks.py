"""The parts of a Transformer block other than attention: the feed-forward network and the residual connection.

Wang et al. (2019), R-Transformer, Eq. 7-8; Vaswani et al. (2017), §3.1 and §3.3.
"""

from typing import Any, cast

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn.streaming import State, Streaming
from rtx.nn.validate import check_choice, check_fraction, check_positive


class FeedForward(nn.Module):
    """A network of two linear layers, the same at every position.

    Args:
        d_model: D, width of the input and of the output.
        d_hidden: width between the two layers; by default 4 D, as in the authors' code.
        dropout: probability that a hidden unit is set to zero in training.
    """

    def __init__(self, d_model: int, d_hidden: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        check_positive("d_model", d_model)
        width = 4 * d_model if d_hidden is None else check_positive("d_hidden", d_hidden)
        self.expand, self.contract = nn.Linear(d_model, width), nn.Linear(width, d_model)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))

    def forward(self, u: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """Transform each position on its own."""
        # Eq. (7): max(0, u W_1 + b_1) W_2 + b_2
        return self.contract(self.dropout(self.expand(u).relu()))

    def read(self, u: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state is empty: there is nothing to remember."""
        return self(u), ()


class Residual(nn.Module):
    """A sublayer with a residual connection around it and a LayerNorm.

    The LayerNorm is torch's, which adds 1e-5 to the variance. The R-Transformer's code divides by D - 1 in the variance
    and adds 1e-6 to the standard deviation. The D - 1 makes all outputs smaller by one factor (1.6 % at D = 32), which
    the gain can undo. The other term matters only for inputs with a standard deviation near 0.01 or less.

    Args:
        sublayer: maps (B, T, D) to (B, T, D). It may take further arguments, such as a mask.
        d_model: D.
        norm: "post" is Eq. 8 of the paper, LayerNorm(x + sublayer(x)); "pre" is the order of the authors' code,
            x + sublayer(LayerNorm(x)).
        dropout: probability that an element of the sublayer's output is set to zero in training.
    """

    def __init__(self, sublayer: nn.Module, d_model: int, norm: str = "post", dropout: float = 0.0) -> None:
        super().__init__()
        self.order = check_choice("norm", norm, ("post", "pre"))
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))

    def forward(self, x: Float[Tensor, "B T D"], *more: Any) -> Float[Tensor, "B T D"]:
        """Apply the sublayer, the residual connection and the LayerNorm. `more` is passed on to the sublayer."""
        return self._add(x, self.sublayer(self.sublayer_input(x), *more))

    def read(self, x: Float[Tensor, "B T D"], state: Any = None) -> tuple[Float[Tensor, "B T D"], Any]:
        """Read a piece of a stream. The state is the sublayer's."""
        y, state = cast(Streaming, self.sublayer).read(self.sublayer_input(x), state)
        return self._add(x, y), state

    def sublayer_input(self, x: Tensor) -> Tensor:
        """Return what the sublayer reads: x, or LayerNorm(x) if the norm comes first."""
        return self.norm(x) if self.order == "pre" else x

    def _add(self, x: Tensor, y: Tensor) -> Tensor:
        total = x + self.dropout(y)
        # Eq. (8): LayerNorm(x + sublayer(x))
        return self.norm(total) if self.order == "post" else total
