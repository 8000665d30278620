"""The errata detective: where the papers disagree, with the evidence behind a guess."""

import json
from pathlib import Path

from rtx.lab.explore.page import Page

CASES = Path(__file__).parents[1] / "errata.json"


def errata() -> Page:
    """One case after the other: read the claim, guess, then see the evidence that `studies/errata.py` computed."""
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    return Page(
        "errata.js",
        {"cases": cases},
        "read the claim, answer the question for yourself, and only then look.",
        title="Errata detective",
        case=0,
        seen=[],
    )
