"""The claims of the papers and their verdicts, with a filter by paper, by verdict and by word."""

from pathlib import Path
from typing import Any

from rtx.evidence.claim import PAPERS, judged
from rtx.evidence.ledger import LEDGER
from rtx.lab.explore.page import Page

NAMES = dict(zip(PAPERS, ("R-Transformer", "MC-RNN", "Feed-forward attention"), strict=True))
VERDICTS = ("holds", "fails", "open")
ALL: dict[str, Any] = {"paper": "all", "verdict": "all", "word": ""}
PRESETS = {"what held": ALL | {"verdict": "holds"}, "what failed": ALL | {"verdict": "fails"}}
PRESETS["on music"] = ALL | {"word": "nottingham"}


def claims(results: str | Path = LEDGER) -> Page:
    """Every claim with its verdict and the numbers behind it.

    Args:
        results: the ledger's folder.

    Raises:
        ValueError: if a file of the ledger is damaged.
    """
    found = [
        {"paper": NAMES[claim.paper], "text": claim.text, "source": claim.source} | vars(finding)
        for claim, finding in judged(results)
    ]
    return Page(
        "claims.js",
        {"claims": found, "papers": list(NAMES.values()), "verdicts": VERDICTS},
        "choose a paper and a verdict, or type a word, for example: attention.",
        title="Claims and verdicts",
        presets=PRESETS,
        **ALL,
    )
