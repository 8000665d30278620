"""The errata detective: where the papers disagree, with the evidence under a box to tick."""

from collections.abc import Sequence
from functools import cache
from textwrap import fill

import ipywidgets as widgets
from matplotlib.figure import Figure

from rtx.lab.errata import errata as all_errata
from rtx.lab.evidence import Erratum, Evidence
from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS

WIDTH = 92  # letters in a line of the figure


def errata(cases: Sequence[Erratum] | None = None) -> Explorer:
    """One case after the other, with controls `case` and `evidence`: guess, then look.

    Args:
        cases: your own, or by default those of the papers.

    Raises:
        ValueError: if there is no case.
    """
    known = {one.title: one for one in (all_errata() if cases is None else cases)}
    if not known:
        raise ValueError("cases: expected at least one, got none")
    picture = _Picture()

    @cache
    def found(case: str) -> Evidence:
        return known[case].find()

    def update(case: str, evidence: bool) -> str:
        erratum = known[case]
        picture.show(erratum, found(case) if evidence else None)
        return found(case).verdict if evidence else f"Your guess? {erratum.question}"

    return Explorer(
        picture.figure,
        update,
        "read the claim, answer the question for yourself, and only then tick the box",
        case=widgets.Dropdown(options=list(known), description="case"),
        evidence=widgets.Checkbox(False, description="show the evidence"),
    )


class _Picture:
    """The claim on top; below it bars, once they may be seen."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=(7.2, 3.4))
        self.figure.set_layout_engine("none")  # the axes' place is given below
        self.text = self.figure.text(0.02, 0.97, "", va="top", fontsize=10, linespacing=1.4)
        self.axes = self.figure.add_axes((0.34, 0.16, 0.58, 0.52))
        self.hidden = self.figure.text(0.5, 0.4, "the evidence is hidden: guess first", ha="center", color="0.5")

    def show(self, erratum: Erratum, evidence: Evidence | None) -> None:
        """A case, its evidence or the question alone."""
        self.text.set_text(f"{erratum.source}\n{fill(erratum.claim, WIDTH)}\n{fill(erratum.question, WIDTH)}")
        self.axes.clear()
        self.axes.set_visible(evidence is not None)
        self.hidden.set_visible(evidence is None)
        if evidence is None:
            return
        bars = self.axes.barh(list(evidence.bars), list(evidence.bars.values()), color=COLOURS[0], height=0.6)
        self.axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=9)
        self.axes.set_xlabel(evidence.unit)
        self.axes.margins(x=0.12)
        self.axes.invert_yaxis()
        self.axes.tick_params(axis="y", length=0, labelsize=9)
