"""The bricks that every model is built from. `rtx.nn.reference` has the same functions as plain loops."""

from rtx.nn.attention import MultiHeadAttention as MultiHeadAttention
from rtx.nn.blocks import FeedForward as FeedForward
from rtx.nn.blocks import Residual as Residual
from rtx.nn.convolution import CausalConv as CausalConv
from rtx.nn.linear_recurrence import RGLRU as RGLRU
from rtx.nn.local_attention import LocalAttention as LocalAttention
from rtx.nn.local_rnn import LocalRNN as LocalRNN
from rtx.nn.masks import causal_mask as causal_mask
from rtx.nn.multi_channel import MultiChannelRNN as MultiChannelRNN
from rtx.nn.ops import implementation as implementation
from rtx.nn.position import sinusoidal_positions as sinusoidal_positions
from rtx.nn.relative import RelativeAttention as RelativeAttention
