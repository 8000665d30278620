"""Checks for the notebooks' exercises: `checks.windows(mine)` says whether an answer is right, or names its bug."""

from rtx.lab.checks.check import Check, Verdict
from rtx.lab.checks.window import stacked_reach, windows

__all__ = ["Check", "Verdict", "stacked_reach", "windows"]
