"""Checks for the notebooks' exercises: `checks.windows(mine)` says whether an answer is right, or names its bug."""

from rtx.lab.checks.block import residual
from rtx.lab.checks.check import Check, Verdict
from rtx.lab.checks.fast import back_through_tanh, softmax_in_halves
from rtx.lab.checks.music import nll_per_frame
from rtx.lab.checks.pooling import attention_pool, largest_share
from rtx.lab.checks.start import is_causal
from rtx.lab.checks.window import stacked_reach, windows

__all__ = [
    "Check",
    "Verdict",
    "attention_pool",
    "back_through_tanh",
    "is_causal",
    "largest_share",
    "nll_per_frame",
    "residual",
    "softmax_in_halves",
    "stacked_reach",
    "windows",
]
