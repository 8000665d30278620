"""The locality dial: who wins, by the strengths of local rules and of long recall, from a stored sweep, to be extended.

The task is `rtx.tasks.toy.locality_dial`; what is stored, `rtx.lab.dial`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, product
from statistics import mean
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from rtx.lab import dial as sweep
from rtx.lab.background import Background
from rtx.lab.contest import Entrants
from rtx.lab.dial import ENTRANTS, EVERY, STRENGTHS, UPDATES, Cell, Run
from rtx.lab.explore.live_explorer import LiveExplorer
from rtx.lab.explore.words import Words
from rtx.lab.plots import COLOURS, freeze, new_figure

DASHES = ("-", "--", ":", "-.")  # colour alone would not tell all of them apart
STRONG = 0.4  # nats ahead that have the full colour
Colour = tuple[float, float, float]


class Extension:
    """A cell in training: of each model that has the fewest seeds there, the next one.

    Args:
        runs: those there are; finished ones are added.
        made: the models.
        cell: where.
        watch: called now and then, in the thread that trains.
    """

    def __init__(
        self, runs: list[Run], made: Mapping[str, Mapping[str, Any]], cell: Cell, watch: Callable[[], object]
    ) -> None:
        self.runs, self.made, self.cell, self.now = runs, made, cell, ""
        self.background = Background(self._train, watch, "dial")

    def _train(self, background: Background) -> None:
        seeds = {name: 0 for name in self.made}
        for run in self.runs:
            if run.model in seeds and (run.local, run.long) == self.cell:
                seeds[run.model] = max(seeds[run.model], run.seed + 1)
        try:
            for name, seed in seeds.items():
                if seed == min(seeds.values()):
                    breathe = self._breathing(name, background)
                    self.runs.append(sweep.train(name, self.made[name], self.cell, seed, breathe))
        finally:
            self.now = ""  # stopped, too, it stands nowhere

    def _breathing(self, name: str, background: Background) -> Callable[[], None]:
        done = 0

        def breathe() -> None:
            nonlocal done
            done += 1
            self.now = f"{name} is at update {done} of {UPDATES}. "
            background.breathe()

        return breathe


def dial(entrants: Entrants = ENTRANTS, local: float = 1.0, long: float = 1.0) -> LiveExplorer:
    """Who wins where, with controls `local` and `long`, the strengths, and `updates`; "train" adds to that cell.

    Args:
        entrants: name → the arguments of `rtx.build`. Those of the stored sweep are there; others, under other names,
            are to be trained, with the `d_model` that gives them about as many parameters.
        local, long: strengths of the rule and of the recall, at first.

    Raises:
        ValueError: if a strength is not offered, there is no entrant or too many, or one cannot be built.
    """
    for name, value in (("local", local), ("long", long)):
        if value not in STRENGTHS:
            raise ValueError(f"{name}: expected one of {', '.join(map(str, STRENGTHS))}, got {value!r}")
    if not 1 <= len(entrants) <= len(COLOURS):
        raise ValueError(f"entrants: expected one to {len(COLOURS)}, got {len(entrants)}")
    for name, arguments in entrants.items():
        if name in ENTRANTS and arguments != ENTRANTS[name]:
            raise ValueError(f"entrants: expected another name for what is not the stored {name}")
    made = sweep.sized(entrants)
    runs = [run for run in sweep.stored()[1] if run.model in made]
    picture = _Picture(list(made))
    current: dict[Cell, Extension] = {}

    def work(watch: Callable[[], None], local: float, long: float, updates: int) -> Background:
        current[local, long] = Extension(runs, made, (local, long), watch)
        return current[local, long].background

    def update(local: float, long: float, updates: int) -> str:
        cell, at, extended = (local, long), updates // EVERY, list(runs)
        picture.show(extended, cell, at)
        trains = current[cell].now if cell in current else ""
        return trains + _sentence(sweep.by_model(extended, cell), cell, at)

    return LiveExplorer(
        picture.figure,
        update,
        work,
        "set one strength to 0, then the other: who wins where one of the two tools is enough? Then take fewer updates",
        "dial",
        looking=["updates"],
        local=widgets.SelectionSlider(options=STRENGTHS, value=local, description="local rules"),
        long=widgets.SelectionSlider(options=STRENGTHS, value=long, description="long recall"),
        updates=widgets.SelectionSlider(options=range(EVERY, UPDATES + 1, EVERY), value=UPDATES, description="updates"),
    )


def _sentence(found: Mapping[str, Sequence[Run]], cell: Cell, at: int) -> str:
    where = f"Local rules {cell[0]:g}, long recall {cell[1]:g}"
    if not found:
        return f"{where}: not trained yet, press “train”."
    means = {name: mean(run.excess()[at] for run in runs) for name, runs in found.items()}
    ranked = "; ".join(f"{name} {means[name]:.3f}" for name in sorted(means, key=lambda name: means[name]))
    won, seeds = sweep.winner(found, at), len(next(iter(found.values())))
    told = "nobody wins clearly" if won is None else f"{won[0]} wins by {won[1]:.3f}"
    count = f"{seeds} seeds" if seeds > 1 else "one seed"
    return f"{where}, after {at * EVERY} updates: {told}. Nats above the best there is, {count} each: {ranked}."


def initials(name: str) -> str:
    """A name short enough for a cell."""
    return name if len(name) <= 4 else "".join(c for c in name if c.isupper()) or name[:3]


def _label(name: str) -> str:
    return name if initials(name) == name else f"{initials(name)}: {name}"


class _Picture:
    """Left, a cell for each pair of strengths in its winner's colour; right, how the chosen one was learned."""

    def __init__(self, names: list[str]) -> None:
        self.colours = dict(zip(names, COLOURS, strict=False))
        self.figure, (self.map, self.curves) = new_figure(9.6, 3.9, columns=2)
        size = len(STRENGTHS)
        self.image = self.map.imshow(np.ones((size, size, 3)), origin="lower", aspect="auto")
        self.names, self.leads = Words(self.map, 9, raised=1), Words(self.map, 9, raised=-11)
        self.frame = Rectangle((0, 0), 1, 1, fill=False, linewidth=2.5, edgecolor="black", clip_on=False)
        self.map.add_patch(self.frame)
        self.map.set(xticks=range(size), yticks=range(size), xlabel="strength of long recall")
        self.map.set(xticklabels=[f"{s:g}" for s in STRENGTHS], yticklabels=[f"{s:g}" for s in STRENGTHS])
        self.map.set(ylabel="strength of local rules", title="who wins, and by how many nats")
        self.map.spines[:].set_visible(False)
        self.map.tick_params(length=0)
        self.lines = {
            name: self.curves.plot([], [], dash, color=colour, marker=".", label=_label(name))[0]
            for (name, colour), dash in zip(self.colours.items(), cycle(DASHES))
        }
        self.now = self.curves.axvline(UPDATES, color="0.4", linestyle=":", linewidth=1)
        self.curves.set(xlabel=f"updates of {sweep.BATCH} sequences", xlim=(0, UPDATES + 8))
        self.curves.set(ylabel="nats above the best there is", title="the cell in the frame; band: its seeds")
        self.curves.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=9)
        freeze(self.figure)

    def show(self, runs: Sequence[Run], cell: Cell, at: int) -> None:
        """The map after `at` times `EVERY` updates, and the curves of a cell."""
        cells = list(product(range(len(STRENGTHS)), repeat=2))
        found = [self._cell(sweep.by_model(runs, (STRENGTHS[i], STRENGTHS[j])), at) for i, j in cells]
        places, black = [(j, i) for i, j in cells], ["black"] * len(cells)
        self.names.write([name for _, name, _ in found], places, black)
        self.leads.write([lead for _, _, lead in found], places, black)
        colours = np.reshape([colour for colour, _, _ in found], (len(STRENGTHS), len(STRENGTHS), 3))
        self.image.set_data(colours)
        row, column = (STRENGTHS.index(strength) for strength in cell)
        self.frame.set_xy((column - 0.5, row - 0.5))
        self._show_curves(sweep.by_model(runs, cell))
        self.now.set_xdata([at * EVERY] * 2)

    def _cell(self, found: Mapping[str, Sequence[Run]], at: int) -> tuple[Colour, str, str]:
        if len(found) < 2:
            return (1.0, 1.0, 1.0), *((initials(next(iter(found))), "alone") if found else ("·", ""))
        won = sweep.winner(found, at)
        if won is None:
            return (0.9, 0.9, 0.9), "draw", ""
        name, ahead = won
        strength = 0.15 + 0.6 * min(ahead / STRONG, 1)  # pale enough for black text
        red, green, blue = (1 - strength * (1 - part) for part in to_rgb(self.colours[name]))
        return (red, green, blue), initials(name), f"{ahead:.3f}"

    def _show_curves(self, found: Mapping[str, Sequence[Run]]) -> None:
        for band in list(self.curves.collections):
            band.remove()
        highest, updates = 0.1, range(0, UPDATES + 1, EVERY)
        for name, line in self.lines.items():
            values = np.array([run.excess() for run in found.get(name, ())])
            line.set_data(updates if len(values) else [], values.mean(0) if len(values) else [])
            if len(values):
                self.curves.fill_between(updates, values.min(0), values.max(0), color=line.get_color(), alpha=0.2, lw=0)
                highest = max(highest, values.max())
        self.curves.set_ylim(-0.03 * highest, 1.05 * highest)
