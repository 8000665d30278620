"""The claims of the papers and their verdicts, with a filter by paper, by verdict and by word."""

from pathlib import Path
from typing import Any

import seaborn as sns
from matplotlib.figure import Figure

from rtx.evidence.claim import PAPERS, judged
from rtx.evidence.ledger import LEDGER
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, new_figure

NAMES = dict(zip(PAPERS, ("R-Transformer", "MC-RNN", "Feed-forward attention"), strict=True))
VERDICTS = ("holds", "fails", "open")
PRESETS = {"what held": {"verdict": "holds"}, "what failed": {"verdict": "fails"}, "on music": {"word": "nottingham"}}


def claims(results: str | Path = LEDGER) -> Page:
    """Every claim with its verdict and the numbers behind it.

    Args:
        results: the ledger's folder.

    Raises:
        ValueError: if a file of the ledger is damaged.
    """
    found = [
        {
            "paper": NAMES[claim.paper],
            "text": claim.text,
            "source": claim.source,
            "verdict": finding.verdict,
            "suggests": finding.suggests,
            "numbers": finding.sentence,
        }
        for claim, finding in judged(results)
    ]
    return Page(
        Path(__file__).with_name("claims.js"),
        {"claims": found, "papers": list(NAMES.values()), "verdicts": VERDICTS},
        _still(found),
        "choose a paper and a verdict, or type a word, for example: attention.",
        title="Claims and verdicts",
        presets=PRESETS,
        paper="all",
        verdict="all",
        word="",
    )


def _still(found: list[dict[str, Any]]) -> Figure:
    """The number of claims of each paper by verdict."""
    figure, [ax] = new_figure(7.2, 2.2)
    papers, verdicts = ([one[name] for one in found] for name in ("paper", "verdict"))
    colours = [COLOURS[0], COLOURS[1], (0.8, 0.8, 0.8)]
    sns.histplot(y=papers, hue=verdicts, hue_order=VERDICTS, palette=colours, multiple="stack", shrink=0.8, ax=ax)
    sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1), frameon=False, title=None)
    ax.set(xlabel="claims", ylabel="", title="most claims are open: too few seeds, or too small a budget")
    return figure
