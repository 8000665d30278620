"""A claim of a paper."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtx.evidence.verdicts import Finding


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, in our words, and how it is judged.

    Args:
        text: the sentence.
        source: where the paper says it.
        judge: what a folder of results says of it.
        settled_by: what would settle it, or make it firmer.
    """

    text: str
    source: str
    judge: Callable[[Path], Finding]
    settled_by: str
