"""Dropout: of single numbers; for recurrent networks the same at all steps, or of whole words or weights.

Gal & Ghahramani (2016), variational dropout; Wan et al. (2013), DropConnect; Merity, Keskar & Socher (2018), §4.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.kernels.dropout import dropout, relu_dropout
from rtx.nn.validate import check_fraction


class Dropout(nn.Dropout):
    """torch's dropout, with masks that are drawn faster on a CPU (`rtx.nn.kernels.dropout`).

    Args:
        rate: share of the numbers set to zero in training; the others are scaled by 1 / (1 - rate).

    Raises:
        ValueError: if the rate is not in [0, 1).
    """

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__(check_fraction("dropout", rate))

    def forward(self, x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Set numbers to zero, each by itself."""
        if not self.training or not self.p:
            return x
        y: Tensor = dropout(x, self.p)
        return y


class ReluDropout(Dropout):
    """max(0, x), and dropout of it."""

    def forward(self, x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Cut off what is below zero, and set numbers to zero, each by itself."""
        if not self.training or not self.p:
            return x.relu()
        y: Tensor = relu_dropout(x, self.p)
        return y


class LockedDropout(nn.Module):
    """Dropout with one mask for all the steps of a sequence, another for each sequence and each read.

    Args:
        rate: share of the units set to zero in training; the others are scaled by 1 / (1 - rate).

    Raises:
        ValueError: if the rate is not in [0, 1).
    """

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        self.rate = check_fraction("dropout", rate)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Hide the same units at every step."""
        if not self.training or not self.rate:
            return x
        return x * F.dropout(torch.ones_like(x[:, :1]), self.rate)

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.rate}"


def drop_words(table: Float[Tensor, "V D"], rate: float, training: bool) -> Float[Tensor, "V D"]:
    """An embedding table with a share `rate` of its rows set to zero in training: a word is hidden wherever it is."""
    if not training or not rate:
        return table
    return table * F.dropout(torch.ones_like(table[:, :1]), rate)
