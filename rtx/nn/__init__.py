"""The bricks that every model is built from. `rtx.nn.reference` has the same functions as plain loops."""

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.blocks import FeedForward, Residual
from rtx.nn.convolution import CausalConv
from rtx.nn.linear_recurrence import RGLRU
from rtx.nn.local_attention import LocalAttention
from rtx.nn.local_rnn import LocalRNN
from rtx.nn.masks import causal_mask
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.ops import implementation
from rtx.nn.position import sinusoidal_positions
from rtx.nn.relative import RelativeAttention

__all__ = [
    "RGLRU",
    "CausalConv",
    "FeedForward",
    "LocalAttention",
    "LocalRNN",
    "MultiChannelRNN",
    "MultiHeadAttention",
    "RelativeAttention",
    "Residual",
    "causal_mask",
    "implementation",
    "sinusoidal_positions",
]
