"""The backbones of the papers, one file per paper. Each maps (B, T, D) to (B, T, D), causally."""

from collections.abc import Callable
from functools import partial

from torch import nn

from rtx.models.r_transformer import RTransformer
from rtx.models.rnn import RNN
from rtx.models.transformer import Transformer

MODELS: dict[str, Callable[..., nn.Module]] = {
    "r-transformer": RTransformer,
    "transformer": Transformer,
    "rnn": partial(RNN, cell="rnn"),
    "gru": partial(RNN, cell="gru"),
    "lstm": partial(RNN, cell="lstm"),
}
"""Backbones by the name that recipes and the command line use. A model registered here joins the property tests."""

__all__ = ["MODELS", "RNN", "RTransformer", "Transformer"]
