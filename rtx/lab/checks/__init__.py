"""Checks for the notebooks' exercises: `checks.windows(mine)` says whether an answer is right, or names its bug."""

from rtx.lab.checks.after import cache_bytes, compose_steps, half_life
from rtx.lab.checks.attention import causal_attention, split_heads
from rtx.lab.checks.block import notices_order, residual
from rtx.lab.checks.channels import in_degree, join_channels, longest_path
from rtx.lab.checks.check import Check, Verdict
from rtx.lab.checks.convolution import dilated_convolution, tcn_reach
from rtx.lab.checks.digits import accuracy_so_far, reordered
from rtx.lab.checks.evidence import reported, spreads_apart
from rtx.lab.checks.fast import back_through_tanh, softmax_in_halves
from rtx.lab.checks.framing import next_tokens, three_units
from rtx.lab.checks.language import bigram_bits, bits_per_character, nucleus
from rtx.lab.checks.memory import next_memory, xl_reach
from rtx.lab.checks.music import nll_per_frame
from rtx.lab.checks.pooling import attention_pool, largest_share
from rtx.lab.checks.position import clipped_rows, xl_score
from rtx.lab.checks.start import is_causal
from rtx.lab.checks.training import clipped_step
from rtx.lab.checks.translation import greedy_translation, source_weights
from rtx.lab.checks.window import stacked_reach, windows

__all__ = [
    "Check",
    "Verdict",
    "accuracy_so_far",
    "attention_pool",
    "back_through_tanh",
    "bigram_bits",
    "bits_per_character",
    "cache_bytes",
    "causal_attention",
    "clipped_rows",
    "clipped_step",
    "compose_steps",
    "dilated_convolution",
    "greedy_translation",
    "half_life",
    "in_degree",
    "is_causal",
    "join_channels",
    "largest_share",
    "longest_path",
    "next_memory",
    "next_tokens",
    "nll_per_frame",
    "notices_order",
    "nucleus",
    "reordered",
    "reported",
    "residual",
    "softmax_in_halves",
    "source_weights",
    "split_heads",
    "spreads_apart",
    "stacked_reach",
    "tcn_reach",
    "three_units",
    "windows",
    "xl_reach",
    "xl_score",
]
