"""A recording: panels that follow a few controls. Every setting is computed in advance, so no kernel is needed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rtx.lab.explore.page import Page, compact
from rtx.nn.validate import check_choice


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
        kind: what its values are. "heat": rows of numbers, or a coarse `packed`. "lines": a list of points [x, y] for
            each series; with points [x, y, low, high] also a band. "bars": a number for each bar.
        values: what is drawn.
        title, across, up: texts above, below and beside it.
        names: of the series. A second line with the same name is drawn as dots.
        marks: of heat, columns to mark, from 0.
        x, y: ranges [low, high] of the axes; by default those of the values. Heat needs y, the range of its colours.
            Bars stand in the middle between whole steps of x, by default at 1, 2, 3, ….
        log: of heat, whether the colours are logarithmic.
        diverging: of heat, whether the colours have their middle at 0.
        sets: a control that a click sets: by the x axis of lines, by the row of heat.
        level: of lines, a control whose value is a line across; a click sets it by the y axis.
    """

    kind: str
    values: Any
    title: str = ""
    across: str = ""
    up: str = ""
    names: Sequence[str] = ()
    marks: Sequence[int] = ()
    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None
    log: bool = False
    diverging: bool = False
    sets: str = ""
    level: str = ""


Seen = tuple[str, list[Panel]]
"""What is seen at a setting: a sentence, and the panels."""


def record(controls: dict[str, Control], see: Callable[..., Seen]) -> dict[str, Any]:
    """Return what recording.js plays: `see` called with every setting of the controls."""
    pool: dict[str, int] = {}  # the place of each different part, by its JSON
    known: dict[int, tuple[Any, int]] = {}  # the same of objects that came before, by their id

    def keep(part: Any) -> int:
        if id(part) not in known:
            known[id(part)] = part, pool.setdefault(json.dumps(compact(part)), len(pool))
        return known[id(part)][1]

    moments = []
    for values in product(*(control.values for control in controls.values())):
        sentence, panels = see(**dict(zip(controls, values, strict=True)))
        parts = [part for panel in panels for part in (vars(panel) | {"values": None}, panel.values)]
        moments.append([keep(sentence), *map(keep, parts)])
    shown = compact({name: vars(control) for name, control in controls.items()})
    return {"controls": shown, "pool": [json.loads(text) for text in pool], "moments": moments}


class Recording(Page):
    """An explorer of panels and controls whose every setting is recorded.

    Args:
        name, title, caption: as in `Page`.
        controls: by the name of the argument of `see`.
        see: returns what is seen at a setting: a sentence, and the panels.
        script: recording.js, or a script that shows more than that.
        state: the state at the start; by default each control has its first value.
    """

    def __init__(
        self,
        name: str,
        title: str,
        caption: str,
        controls: dict[str, Control],
        see: Callable[..., Seen],
        script: str = "recording.js",
        **state: Any,
    ) -> None:
        self.controls, self.see = controls, see
        begin = {key: control.values[0] for key, control in controls.items()} | state
        super().__init__(script, record(controls, see), caption, title=title, **begin)
        self.name = name

    @property
    def text(self) -> str:
        """The sentence that is seen now."""
        return self.seen()[0]

    def seen(self) -> Seen:
        """What is seen now. A control whose state is not among its values shows the nearest number or the last text."""
        return self.see(**{name: _shown(self.state[name], one.values) for name, one in self.controls.items()})

    def set(self, **state: Any) -> str:
        """Move controls from code, as a reader would, and return the sentence then seen.

        Raises:
            ValueError: if there is no control of a name, or it has no such value.
        """
        offered = self.offered()
        for name in offered.keys() & state:
            check_choice(name, str(state[name]), map(str, offered[name]))
        super().set(**state)
        return self.text

    def offered(self) -> Mapping[str, Sequence[Any]]:
        """The values to choose from, by the control's name."""
        return {name: control.values for name, control in self.controls.items()}


def _shown(value: Any, values: Sequence[Any]) -> Any:
    if value in values:
        return value
    return values[-1] if isinstance(value, str) else min(values, key=lambda one: float(abs(one - value)))
