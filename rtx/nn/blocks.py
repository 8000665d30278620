"""What stands around the sublayers of a Transformer-like block: the feed-forward network and the residual.

Wang et al. (2019), R-Transformer, Eq. 7-8; Vaswani et al. (2017), §3.1 and §3.3.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn.dropout import Dropout, ReluDropout
from rtx.nn.state import State
from rtx.nn.validate import check_choice, check_positive


class FeedForward(nn.Module):
    """The same two-layer network at every position.

    Args:
        d_model: D, width of the input and of the output.
        d_hidden: width between the two layers; 4 D by default, as in the authors' code.
        dropout: share of the hidden units set to zero in training.

    Raises:
        ValueError: if a size is below 1 or dropout is not in [0, 1).
    """

    def __init__(self, d_model: int, d_hidden: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        width = check_positive("d_hidden", 4 * check_positive("d_model", d_model) if d_hidden is None else d_hidden)
        self.expand, self.contract = nn.Linear(d_model, width), nn.Linear(width, d_model)
        self.activation = ReluDropout(dropout)

    def forward(self, u: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """Transform each position by itself."""
        # Eq. (7): max(0, u W_1 + b_1) W_2 + b_2
        return self.contract(self.activation(self.expand(u)))

    def step(self, u: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream; there is nothing to remember."""
        return self(u), ()


class Residual(nn.Module):
    """A sublayer with a way around it and a LayerNorm.

    Args:
        sublayer: maps (B, T, D) to (B, T, D), perhaps with more arguments, such as a mask.
        d_model: D.
        norm: "post" is the paper's Eq. 8, LayerNorm(x + sublayer(x)); "pre" is the order of the authors' code,
            x + sublayer(LayerNorm(x)).
        dropout: share of the sublayer's output set to zero in training.

    Raises:
        ValueError: if `norm` is unknown or dropout is not in [0, 1).
    """

    def __init__(self, sublayer: nn.Module, d_model: int, norm: str = "post", dropout: float = 0.0) -> None:
        super().__init__()
        self.order = check_choice("norm", norm, ("post", "pre"))
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(check_positive("d_model", d_model))
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"], *more: Any) -> Float[Tensor, "B T D"]:
        """Add the sublayer's output to its input, and normalise after or before; `more` goes to the sublayer."""
        y = self.sublayer(self._before(x), *more)
        return self._after(x, y)

    def step(self, x: Float[Tensor, "B D"], state: Any = None, *more: Any) -> tuple[Float[Tensor, "B D"], Any]:
        """One position of a stream; the state is the sublayer's."""
        y, state = self.sublayer.step(self._before(x), state, *more)  # type: ignore[operator]
        return self._after(x, y), state

    def _before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.order == "pre" else x

    def _after(self, x: Tensor, y: Tensor) -> Tensor:
        y = x + self.dropout(y)
        # Eq. (8)
        return self.norm(y) if self.order == "post" else y
