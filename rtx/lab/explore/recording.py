"""A recording: panels that follow a few controls. Every setting is computed in advance, so no kernel is needed."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtx.lab.explore.page import Page, checked, compact, unpacked
from rtx.lab.plots import COLOURS
from rtx.nn.validate import check_choice

MOST = 4000  # settings
Values = tuple[str, dict[str, Any]]
"""What is seen at a setting: a sentence, and the content of each panel by its name."""


@dataclass(frozen=True)
class Control:
    """A slider, or a menu.

    Args:
        label: shown before it.
        values: numbers or texts, in order.
        texts: with these it is a menu; what is shown for each value.
        seconds: with this a button plays the slider from end to end in so many seconds.
    """

    label: str
    values: Sequence[Any]
    texts: Sequence[str] = ()
    seconds: float = 0


@dataclass(frozen=True)
class Panel:
    """One part of the picture. A click in it can move a control.

    Args:
        kind: what its content is. "heat": rows of numbers, or a coarse `packed`. "lines": a list of points [x, y] for
            each series; with points [x, y, low, high] also a band. "bars": a number for each bar. A content of None
            leaves the panel empty.
        title, across, up: texts above, below and beside it.
        names: of the series. A second line with the same name is drawn as dots.
        places: of bars, the name of each.
        marks: of heat, columns to mark, from 0.
        x, y: ranges [low, high] of the axes; by default those of all contents. Of heat, y is the range of the colours.
        log: of heat, whether the colours are logarithmic.
        diverging: of heat, whether the colours have their middle at 0.
        sets: a control that a click sets: by the x axis of lines, by the row of heat.
        level: of lines, a control whose value is a line across; a click sets it by the y axis.
        share: its part of the picture's width.
    """

    kind: str
    title: str = ""
    across: str = ""
    up: str = ""
    names: Sequence[str] = ()
    places: Sequence[str] = ()
    marks: Sequence[int] = ()
    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None
    log: bool = False
    diverging: bool = False
    sets: str = ""
    level: str = ""
    share: float = 1.0


def record(controls: dict[str, Control], panels: dict[str, Panel], see: Callable[..., Values]) -> dict[str, Any]:
    """Return what recording.js plays: `see` called with every setting of the controls.

    Raises:
        ValueError: if there are more than 4,000 settings.
    """
    settings = math.prod(len(control.values) for control in controls.values())
    if not 1 <= settings <= MOST:
        raise ValueError(f"controls: expected 1 to {MOST:,} settings, got {settings:,}: offer fewer values")
    pool: list[Any] = []  # each different content once
    places: dict[str, int] = {}
    known: dict[int, tuple[Any, int]] = {}  # objects that came before, by their id

    def keep(value: Any) -> int:
        if id(value) not in known:
            content = compact(value)
            place = places.setdefault(json.dumps(content), len(pool))
            if place == len(pool):
                pool.append(content)
            known[id(value)] = value, place
        return known[id(value)][1]

    moments = []
    for values in product(*(control.values for control in controls.values())):
        sentence, contents = see(**dict(zip(controls, values, strict=True)))
        moments.append([keep(sentence), *(keep(contents[name]) for name in panels)])
    shown = {name: asdict(control) for name, control in controls.items()}
    drawn = [asdict(panel) for panel in panels.values()]
    return {"controls": compact(shown), "panels": compact(drawn), "pool": pool, "moments": moments}


class Recording(Page):
    """An explorer of panels and controls whose every setting is recorded.

    Args:
        name: of the page that the site gives it.
        title: of the explorer.
        caption: what to try.
        controls: by the name of the argument of `see`.
        panels: by the name under which `see` returns their content.
        see: returns what is seen at a setting: a sentence, and each panel's content.
        start: the setting at the start; by default each control's first value.

    Raises:
        ValueError: as `record`.
    """

    def __init__(
        self,
        name: str,
        title: str,
        caption: str,
        controls: dict[str, Control],
        panels: dict[str, Panel],
        see: Callable[..., Values],
        **start: Any,
    ) -> None:
        self.see, self.controls = see, controls
        begin = {key: start.get(key, control.values[0]) for key, control in controls.items()}
        data, still = checked(record(controls, panels, see)), draw(panels, see(**begin)[1])
        super().__init__(Path(__file__).with_name("recording.js"), data, still, caption, title=title, **begin)
        self.name = name

    @property
    def text(self) -> str:
        """The sentence that is seen now."""
        return self.see(**self.state)[0]

    def set(self, **state: Any) -> str:
        """Move controls from code, as a reader would, and return the sentence then seen.

        Raises:
            ValueError: if there is no control of a name, or it has no such value.
        """
        for name, value in state.items():
            values = self.controls[check_choice("state", name, self.controls)].values
            if value not in values:
                raise ValueError(f"{name}: {value!r} is not offered, allowed are {', '.join(map(str, values))}")
        super().set(**state)
        return self.text


def content(values: Any, **panel: Any) -> dict[str, Any]:
    """The content of a panel that needs other arguments than the panel's own."""
    return {"values": values, "panel": panel}


def draw(panels: dict[str, Panel], contents: dict[str, Any]) -> Figure:
    """The panels at one setting as a figure, for where no script runs."""
    kinds: dict[str, Callable[..., None]] = {"heat": _heat, "lines": _lines, "bars": _bars}
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, len(panels), width_ratios=[panel.share for panel in panels.values()], squeeze=False)[0]
    for ax, (name, panel) in zip(axes, panels.items(), strict=True):
        found = compact(contents[name])
        if isinstance(found, dict):
            panel, found = replace(panel, **found["panel"]), found["values"]
        if found is not None:
            kinds[panel.kind](ax, panel, found)
        ax.set(xlabel=panel.across, ylabel=panel.up, title=panel.title)
    return figure


def _heat(ax: Axes, panel: Panel, found: Any) -> None:
    rows = unpacked(found) if isinstance(found, dict) else found
    shown = [[math.nan if panel.log and not value else value for value in row] for row in rows]
    extent = (0.5, len(rows[0]) + 0.5, len(rows) + 0.5, 0.5)
    how: dict[str, Any] = {"cmap": "RdBu_r" if panel.diverging else "viridis", "norm": "log" if panel.log else "linear"}
    ax.imshow(shown, aspect="auto", interpolation="nearest", extent=extent, clim=panel.y or (None, None), **how)


def _lines(ax: Axes, panel: Panel, series: list[list[list[float]]]) -> None:
    shown = list(dict.fromkeys(panel.names))
    for i, (name, points) in enumerate(zip(panel.names, series, strict=True)):
        x, y, *band = map(list, zip(*points, strict=True)) if points else ([], [])
        dots: dict[str, Any] = {"marker": "o", "linestyle": ""} if name in panel.names[:i] else {"label": name}
        colour = COLOURS[shown.index(name) % len(COLOURS)]
        ax.plot(x, y, color=colour, **dots)
        if band:
            ax.fill_between(x, band[0], band[1], color=colour, alpha=0.25)
    ax.set(xlim=panel.x, ylim=panel.y)
    if len(shown) > 1:
        ax.legend(frameon=False, fontsize=8)


def _bars(ax: Axes, panel: Panel, values: list[float]) -> None:
    ax.bar(panel.places or range(1, len(values) + 1), values, color=COLOURS[0])
    ax.set_ylim(panel.y)
