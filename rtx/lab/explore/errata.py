"""The errata detective: where the papers disagree, with the evidence behind a guess."""

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rtx.lab.explore.page import Page
from rtx.lab.plots import COLOURS, new_figure

CASES = Path(__file__).parents[1] / "errata.json"


def errata() -> Page:
    """One case after the other: read the claim, guess, then see the evidence that `studies/errata.py` computed."""
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    return Page(
        Path(__file__).with_name("errata.js"),
        {"cases": cases},
        _still(cases[0]),
        "read the claim, answer the question for yourself, and only then look.",
        title="Errata detective",
        case=0,
        seen=[],
    )


def _still(case: dict[str, Any]) -> Figure:
    """The first case with its evidence."""
    figure, [ax] = new_figure(7.2, 3)
    bars = ax.barh(*zip(*case["bars"], strict=True), color=COLOURS[0])
    ax.bar_label(bars, fmt="%.3g", padding=3, fontsize=9)
    ax.set(xlabel=case["unit"], title=f"{case['title']} ({case['source']})")
    ax.margins(x=0.12)
    ax.invert_yaxis()
    return figure
