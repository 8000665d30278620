"""The bricks every model is built from. `rtx.nn.naive` holds the same functions as plain loops."""

from rtx.nn.attention import MultiHeadAttention, causal_mask
from rtx.nn.blocks import FeedForward, Residual
from rtx.nn.local_rnn import LocalRNN
from rtx.nn.position import sinusoidal_positions
from rtx.nn.relative import RelativeAttention

__all__ = [
    "FeedForward",
    "LocalRNN",
    "MultiHeadAttention",
    "RelativeAttention",
    "Residual",
    "causal_mask",
    "sinusoidal_positions",
]
