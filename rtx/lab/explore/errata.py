"""The errata detective: where the papers disagree, with the evidence behind a guess."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rtx.lab.errata import errata as all_errata
from rtx.lab.evidence import Erratum, Evidence
from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS


def errata(cases: Sequence[Erratum] | None = None) -> Page:
    """One case after the other: read the claim, guess, then see the evidence.

    Args:
        cases: your own, or by default those of the papers.

    Raises:
        ValueError: if there is no case.
    """
    known = list(all_errata() if cases is None else cases)
    if not known:
        raise ValueError("cases: expected at least one, got none")
    found = [one.find() for one in known]
    data = [
        {"title": one.title, "source": one.source, "claim": one.claim, "question": one.question}
        | {"bars": list(evidence.bars.items()), "unit": evidence.unit, "verdict": evidence.verdict}
        for one, evidence in zip(known, found, strict=True)
    ]
    return Page(
        Path(__file__).with_name("errata.js"),
        {"cases": data},
        _still(known[0], found[0]),
        "read the claim, answer the question for yourself, and only then look",
        title="Errata detective",
        case=0,
        seen=[],
    )


def _still(erratum: Erratum, evidence: Evidence) -> Figure:
    """The first case with its evidence."""
    figure = Figure(figsize=(7.2, 3), layout="constrained")
    ax = figure.subplots()
    bars = ax.barh(list(evidence.bars), list(evidence.bars.values()), color=COLOURS[0], height=0.6)
    ax.bar_label(bars, fmt="%.3g", padding=3, fontsize=9)
    ax.set(xlabel=evidence.unit, title=f"{erratum.title} ({erratum.source})")
    ax.margins(x=0.12)
    ax.invert_yaxis()
    return figure
