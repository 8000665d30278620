"""What an erratum is: a claim, a question, and a function that computes the evidence."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """What was found.

    Args:
        bars: numbers by name, to be compared.
        unit: of the numbers.
        verdict: one sentence about them.
        supported: whether the numbers support this sentence.
    """

    bars: dict[str, float]
    unit: str
    verdict: str
    supported: bool


@dataclass(frozen=True)
class Erratum:
    """A claim, and what becomes of it.

    Args:
        title: a few words.
        source: where it stands.
        claim: what is printed, or what the code does.
        question: what to guess before looking.
        find: computes the evidence, in at most a few seconds.
    """

    title: str
    source: str
    claim: str
    question: str
    find: Callable[[], Evidence]
