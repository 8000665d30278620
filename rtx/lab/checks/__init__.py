"""Checks for the notebooks' exercises: `checks.windows(mine)` says whether an answer is right, or names its bug."""

from rtx.lab.checks.check import Check, Verdict
from rtx.lab.checks.music import nll_per_frame
from rtx.lab.checks.window import stacked_reach, windows

__all__ = ["Check", "Verdict", "nll_per_frame", "stacked_reach", "windows"]
