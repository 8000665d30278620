"""Dropout that hides the same units at all steps of a sequence, or whole words.

Gal & Ghahramani (2016), variational dropout; Merity, Keskar & Socher (2018), §4.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.validate import check_fraction


class LockedDropout(nn.Module):
    """Dropout with one mask for all steps of a sequence. Each sequence and each call draws a new mask.

    Args:
        p: probability that a unit is set to zero in training. The other units are scaled by 1 / (1 - p).
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = check_fraction("dropout", p)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Hide the same units at every step."""
        return F.dropout1d(x.transpose(1, 2), self.p, self.training).transpose(1, 2)

    def extra_repr(self) -> str:
        """Return what `print(model)` shows."""
        return f"p={self.p}"


def drop_words(
    x: Float[Tensor, "*batch D"], tokens: Int[Tensor, "*batch"], vocabulary: int, p: float, training: bool
) -> Float[Tensor, "*batch D"]:
    """Set the vectors of a word to zero with probability `p`, wherever the word occurs."""
    return x * F.dropout(x.new_ones(vocabulary, 1), p)[tokens] if training and p else x
