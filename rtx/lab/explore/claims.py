"""The claims of the papers and their verdicts, with a filter by paper, by verdict and by word."""

from collections import Counter
from pathlib import Path

from matplotlib.figure import Figure

from rtx.evidence.claim import PAPERS, judged
from rtx.evidence.ledger import LEDGER
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, new_figure

NAMES = dict(zip(PAPERS, ("R-Transformer", "MC-RNN", "Feed-forward attention"), strict=True))
VERDICTS = ("holds", "fails", "open")


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
    counted = Counter((one["paper"], one["verdict"]) for one in found)
    return Page(
        Path(__file__).with_name("claims.js"),
        {"claims": found, "papers": list(NAMES.values()), "verdicts": VERDICTS},
        _still(counted),
        "choose a paper and a verdict, or type a word, for example: attention.",
        title="Claims and verdicts",
        presets={
            "what held": {"verdict": "holds"},
            "what failed": {"verdict": "fails"},
            "on music": {"word": "nottingham"},
        },
        paper="all",
        verdict="all",
        word="",
    )


def _still(counted: Counter[tuple[str, str]]) -> Figure:
    """The number of claims of each paper by verdict."""
    figure, [ax] = new_figure(7.2, 2.2)
    begin = dict.fromkeys(NAMES.values(), 0)
    for verdict, colour in zip(VERDICTS, (COLOURS[0], COLOURS[1], "0.8"), strict=True):
        numbers = [counted[name, verdict] for name in begin]
        bars = ax.barh(list(begin), numbers, left=list(begin.values()), color=colour, label=verdict)
        ax.bar_label(bars, [str(number) if number > 5 else "" for number in numbers], label_type="center", fontsize=9)
        begin = {name: begin[name] + number for name, number in zip(begin, numbers, strict=True)}
    ax.invert_yaxis()
    ax.set(xlabel="claims", title="most claims are open: too few seeds, or too small a budget")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
