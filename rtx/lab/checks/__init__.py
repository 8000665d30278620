"""Checks for the notebooks' exercises: `checks.windows(mine)` says whether an answer is right, or names its bug."""

from rtx.lab.checks.attention import causal_attention, split_heads
from rtx.lab.checks.block import residual
from rtx.lab.checks.channels import in_degree, join_channels, longest_path
from rtx.lab.checks.check import Check, Verdict
from rtx.lab.checks.convolution import dilated_convolution, tcn_reach
from rtx.lab.checks.fast import back_through_tanh, softmax_in_halves
from rtx.lab.checks.language import bigram_bits, bits_per_character, nucleus
from rtx.lab.checks.music import nll_per_frame
from rtx.lab.checks.pooling import attention_pool, largest_share
from rtx.lab.checks.position import clipped_rows, xl_score
from rtx.lab.checks.start import is_causal
from rtx.lab.checks.window import stacked_reach, windows

__all__ = [
    "Check",
    "Verdict",
    "attention_pool",
    "back_through_tanh",
    "bigram_bits",
    "bits_per_character",
    "causal_attention",
    "clipped_rows",
    "dilated_convolution",
    "in_degree",
    "is_causal",
    "join_channels",
    "largest_share",
    "longest_path",
    "nll_per_frame",
    "nucleus",
    "residual",
    "softmax_in_halves",
    "split_heads",
    "stacked_reach",
    "tcn_reach",
    "windows",
    "xl_score",
]
