"""The bricks that every model is built from. `rtx.nn.reference` has the same functions as plain loops."""

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.blocks import FeedForward, Residual
from rtx.nn.local_rnn import LocalRNN
from rtx.nn.masks import causal_mask
from rtx.nn.ops import implementation
from rtx.nn.position import sinusoidal_positions
from rtx.nn.relative import RelativeAttention

__all__ = [
    "FeedForward",
    "LocalRNN",
    "MultiHeadAttention",
    "RelativeAttention",
    "Residual",
    "causal_mask",
    "implementation",
    "sinusoidal_positions",
]
