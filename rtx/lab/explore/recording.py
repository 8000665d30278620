"""A recording: panels that follow a few controls. Every setting is computed in advance, so no kernel is needed."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from rtx.lab.explore.page import Page, checked, compact, packed, unpacked
from rtx.lab.plots import COLOURS
from rtx.nn.validate import check_choice

MOST = 4000  # settings
Values = tuple[str, dict[str, Any]]
"""What is seen at a setting: a sentence, and the content of each panel by its name."""


@dataclass(frozen=True)
class Slide:
    """A slider.

    Args:
        label: shown before it.
        values: numbers or texts, in order.
        seconds: with this, a button plays the slider from end to end in so many seconds.
    """

    label: str
    values: Sequence[Any]
    seconds: float = 0


@dataclass(frozen=True)
class Pick:
    """A menu.

    Args:
        label: shown before it.
        values: texts or numbers.
        texts: what is shown for each; by default the values.
    """

    label: str
    values: Sequence[Any]
    texts: Sequence[str] = ()


Controls = dict[str, Slide | Pick]


@dataclass(frozen=True)
class Panel:
    """One part of the picture. A click in it can move a control.

    Args:
        kind: what its content is. "heat": rows of numbers, or a `table`. "lines": a list of points [x, y] for each
            series; of points [x, y, low, high], a band, too. "stems": the same, the first series as stems, others as
            dots. "bars": numbers for each series. "text": a text, or a list of [word, share from 0 to 1], the share
            as its background. None leaves the panel empty.
        title, across, up: texts above, below and beside it.
        names: of the series. Of lines, one with the name of one before it is drawn as dots of the same colour.
        places: of bars, the name of each.
        x, y: ranges [low, high] of the axes; found from all contents if not given. Of heat, y is that of its colours.
        log: whether y is logarithmic; of heat, whether its colours are.
        diverging: of heat, whether its colours have their middle at 0.
        fit: whether y is found anew at each setting.
        sets: a control that a click sets: by the x axis, the bar or the word, and in heat by the row.
        level: of lines, a control whose value is a line across; a click sets it by the y axis.
        share: its part of the picture's width.
    """

    kind: str
    title: str = ""
    across: str = ""
    up: str = ""
    names: Sequence[str] = ()
    places: Sequence[str] = ()
    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None
    log: bool = False
    diverging: bool = False
    fit: bool = False
    sets: str = ""
    level: str = ""
    share: float = 1.0


@dataclass
class Tape:
    """The contents of all settings, each different one once."""

    pool: list[Any] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    known: dict[int, tuple[Any, int]] = field(default_factory=dict)  # objects that came before, by their id

    def keep(self, value: Any) -> int:
        """Return where `value` stands in the pool."""
        if id(value) not in self.known:
            content = compact(value)
            place = self.places.setdefault(json.dumps(content), len(self.pool))
            if place == len(self.pool):
                self.pool.append(content)
            self.known[id(value)] = value, place
        return self.known[id(value)][1]


def record(controls: Controls, panels: dict[str, Panel], see: Callable[..., Values]) -> dict[str, Any]:
    """Return what recording.js plays: `see` called with every setting of the controls.

    Raises:
        ValueError: if there are more than 4,000 settings, or a panel has no such kind.
    """
    for panel in panels.values():
        check_choice("kind", panel.kind, _DRAW)
    settings = math.prod(len(control.values) for control in controls.values())
    if not 1 <= settings <= MOST:
        raise ValueError(f"controls: expected 1 to {MOST:,} settings, got {settings:,}: offer fewer values")
    tape, moments = Tape(), []
    for values in product(*(control.values for control in controls.values())):
        sentence, contents = see(**dict(zip(controls, values, strict=True)))
        moments.append([tape.keep(sentence), *(tape.keep(contents[name]) for name in panels)])
    kinds = {name: {"kind": type(one).__name__.lower(), **asdict(one)} for name, one in controls.items()}
    drawn = [{"name": name, **asdict(panel)} for name, panel in panels.items()]
    return {"controls": compact(kinds), "panels": compact(drawn), "pool": tape.pool, "moments": moments}


class Recording(Page):
    """An explorer of panels and controls whose every setting is recorded.

    Args:
        title: of the explorer.
        caption: what to try.
        controls: by the name of the argument of `see`.
        panels: by the name under which `see` returns their content.
        see: returns what is seen at a setting: a sentence, and each panel's content.
        name: of the page that the site gives it.
        presets: settings worth a look, by the text of their button.
        start: the setting at the start; by default each control's first value.

    Raises:
        ValueError: as `record`, or if a control has no such value.
    """

    def __init__(
        self,
        title: str,
        caption: str,
        controls: Controls,
        panels: dict[str, Panel],
        see: Callable[..., Values],
        name: str,
        presets: dict[str, dict[str, Any]] | None = None,
        **start: Any,
    ) -> None:
        begin = {key: start.get(key, control.values[0]) for key, control in controls.items()}
        self.see, self.controls = see, controls
        self._check(start)
        data = checked(record(controls, panels, see))
        still = draw(panels, see(**begin)[1])
        super().__init__(
            Path(__file__).with_name("recording.js"), data, still, caption, title=title, presets=presets, **begin
        )
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
        self._check(state)
        super().set(**state)
        return self.text

    def _check(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            values = self.controls[check_choice("state", name, self.controls)].values
            if value not in values:
                raise ValueError(f"{name}: {value!r} is not offered, allowed are {', '.join(map(str, values))}")


def table(values: Tensor, marks: Sequence[int] = (), **panel: Any) -> dict[str, Any]:
    """The content of a large heat map, in 256 colours.

    Args:
        values: rows of finite numbers.
        marks: columns to mark, from 0.
        panel: what differs from the panel's own arguments.
    """
    return packed(values) | {"marks": list(marks), "panel": panel}


def series(points: list[Any], **panel: Any) -> dict[str, Any]:
    """The content of lines that need other arguments than the panel's own."""
    return {"series": points, "panel": panel}


def draw(panels: dict[str, Panel], contents: dict[str, Any]) -> Figure:
    """The panels at one setting as a figure, for where no script runs."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, len(panels), width_ratios=[panel.share for panel in panels.values()], squeeze=False)[0]
    for ax, (name, panel) in zip(axes, panels.items(), strict=True):
        content = compact(contents[name])
        if isinstance(content, dict):
            panel = replace(panel, **content["panel"])
            content = content["series"] if "series" in content else unpacked(content)
        if content is not None:
            _DRAW[panel.kind](ax, panel, content)
        ax.set(xlabel=panel.across, ylabel=panel.up, title=panel.title)
    return figure


def _heat(ax: Axes, panel: Panel, rows: list[list[float]]) -> None:
    low, high = panel.y or (None, None)
    norm = "log" if panel.log else "linear"
    shown = [[math.nan if panel.log and not value else value for value in row] for row in rows]
    extent = (0.5, len(rows[0]) + 0.5, len(rows) + 0.5, 0.5)
    colours = "RdBu_r" if panel.diverging else "viridis"
    ax.imshow(shown, aspect="auto", interpolation="nearest", extent=extent, cmap=colours, norm=norm, clim=(low, high))


def _lines(ax: Axes, panel: Panel, series: list[list[list[float]]]) -> None:
    shown = list(dict.fromkeys(panel.names))
    for i, (name, points) in enumerate(zip(panel.names, series, strict=True)):
        dots: dict[str, Any] = {"marker": "o", "linestyle": ""} if name in panel.names[:i] else {"label": name}
        colour = COLOURS[shown.index(name) % len(COLOURS)]
        ax.plot([x for x, *_ in points], [y for _, y, *_ in points], color=colour, **dots)
        if points and len(points[0]) > 2:
            x, _, low, high = zip(*points, strict=True)
            ax.fill_between(x, low, high, color=colour, alpha=0.25)
    ax.set(xlim=panel.x, ylim=panel.y, yscale="log" if panel.log else "linear")
    if len(shown) > 1:
        ax.legend(frameon=False, fontsize=8)


def _stems(ax: Axes, panel: Panel, series: list[list[list[float]]]) -> None:
    for i, (name, points) in enumerate(zip(panel.names, series, strict=True)):
        x, y = [place for place, _ in points], [value for _, value in points]
        if i == 0:
            ax.vlines(x, 0, y, color=COLOURS[0], label=name)
        else:
            ax.plot(x, y, "o", color=COLOURS[i], label=name)
    ax.set(xlim=panel.x, ylim=panel.y)


def _bars(ax: Axes, panel: Panel, series: list[list[float]]) -> None:
    size = 0.8 / len(series)
    for i, values in enumerate(series):
        name = panel.names[i] if panel.names else None
        ax.bar([place + i * size for place in range(len(values))], values, size, color=COLOURS[i], label=name)
    names = panel.places or range(1, len(series[0]) + 1)
    ax.set_xticks(
        [place + 0.4 - size / 2 for place in range(len(series[0]))], [str(name) for name in names], parse_math=False
    )
    ax.set_ylim(panel.y)
    if len(series) > 1:
        ax.legend(frameon=False, fontsize=8)


def _text(ax: Axes, panel: Panel, text: str | list[list[Any]]) -> None:
    whole = text if isinstance(text, str) else " ".join(word for word, _ in text)
    ax.text(0, 1, whole, va="top", wrap=True, parse_math=False)
    ax.set_axis_off()


_DRAW: dict[str, Callable[..., None]] = {
    "heat": _heat,
    "lines": _lines,
    "stems": _stems,
    "bars": _bars,
    "text": _text,
}
