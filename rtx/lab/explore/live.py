"""An explorer that trains beside the notebook. Where no kernel listens, it plays what was recorded of its runs."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import traitlets
from matplotlib.figure import Figure

from rtx.lab import background
from rtx.lab.explore.page import Page
from rtx.lab.explore.recording import Controls, Panel, Values, draw, record

MOST = 6  # runs side by side
KINDS = {bool: "box", int: "whole", float: "number", str: "text"}
NOTHING = "Choose the settings and press “Train”."
Recorded = tuple[Controls, dict[str, Panel], Callable[..., Values]]


class Live(Page):
    """Settings, buttons, and a recording of the runs, which grows while one of them trains.

    The page presses a button by its trait `wish`. An explorer of the same name that is made again, as when its cell is
    run again, ends the training that the one before had begun.

    Args:
        name: of the page that the site gives it, and of the work in the background.
        title: of the explorer.
        caption: what to try.
        view: controls of the recording, which change what is seen only. A value that is not offered means the last one.
        settings: controls of the form, which the next run is made of.
    """

    wish = traitlets.Any(()).tag(sync=True)  # the last button, and how many were pressed

    def __init__(self, name: str, title: str, caption: str, view: dict[str, Any], **settings: Any) -> None:
        background.end(name, seconds=1.0)
        self.runs: list[Any] = []
        self.refused, self.view = "", view  # why the last settings were refused; where the view is at first
        self._drawing = threading.RLock()
        super().__init__(Path(__file__).with_name("live.js"), {}, Figure(), caption, title=title, **settings, **view)
        self.name = name
        self.show()
        self.observe(self._move, "state")
        self.observe(lambda change: self.press(change.new[0]), "wish")

    def make(self) -> Any:
        """Return the run of the settings, not begun yet: its `background`, and `told`, how far it is, at first "".

        Raises:
            ValueError: saying why there is none.
        """
        raise NotImplementedError

    def form(self) -> list[dict[str, Any]]:
        """Return the fields of the form, each made by `field`."""
        raise NotImplementedError

    def recorded(self) -> Recorded:
        """Return what `record` needs to record the runs as far as they are."""
        raise NotImplementedError

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each run that is seen, for the table below the picture, if there shall be one."""
        return []

    def set(self, **state: Any) -> str:
        """Move controls from code, as a reader would, and return the sentence then seen.

        Raises:
            ValueError: if there is no control of a name, or its menu has no such value.
        """
        for one in self.form():
            if (value := state.get(one["name"])) is not None and one["values"] and value not in one["values"]:
                raise ValueError(f"{one['name']}: expected one of {', '.join(map(str, one['values']))}, got {value!r}")
        super().set(**state)
        return self.text

    @property
    def text(self) -> str:
        """The sentence that is seen now."""
        return self._now()[0]

    def run(self) -> Self:
        """Press "Train", and wait until the training has ended; interrupting the cell stops it.

        If the settings are refused, nothing begins, and the status says why.
        """
        before = self.runs[-1:]
        self.press("train")
        if self.runs[-1:] != before:
            self.runs[-1].background.wait()
        return self

    train = run

    def press(self, button: str) -> None:
        """Press a button: "train", "pause", "resume", "stop" or "clear". One that is disabled does nothing."""
        state = self._state()
        if button == "train" and state != "running":
            self._begin()
        elif button == "clear" and state not in ("running", "paused"):
            self.runs, self.refused = [], ""
            self.show()
        elif self.runs and button == "stop":
            self.runs[-1].background.stop(seconds=1.0)
        elif self.runs and button in ("pause", "resume"):
            getattr(self.runs[-1].background, button)()

    def show(self) -> None:
        """Record everything as it is now. A run that was stopped before its first update is forgotten."""
        with self._drawing:
            self.runs = [run for run in self.runs if run.told or run.background.state != "stopped"]
            self._recorded = self.recorded()
            live = {"form": self.form(), "table": self.table(), "status": self._status(), "state": self._state()}
            self.data = record(*self._recorded) | live

    def save(self, path: str | Path) -> Path:
        """Write what is seen now, as `Page.save`."""
        self.still = draw(self._recorded[1], self._now()[1])
        return super().save(path)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.still = draw(self._recorded[1], self._now()[1])
        return super()._repr_mimebundle_()

    def _now(self) -> Values:
        controls, _, see = self._recorded
        wanted = {name: (self.state[name], one.values) for name, one in controls.items()}
        return see(**{name: value if value in values else values[-1] for name, (value, values) in wanted.items()})

    def _begin(self) -> None:
        self.refused = ""
        try:
            run = self.make()
        except ValueError as error:
            self.refused = background.sentence(error)
        else:
            with self._drawing:
                self.runs = [*self.runs, run][-MOST:]
            run.background.start()
            controls = self._recorded[0]
            newest = {name: value for name, value in self.view.items() if value not in controls[name].values}
            self.state = self.state | newest
        self.show()

    def _move(self, change: Any) -> None:
        if any(change.old[name] != value for name, value in change.new.items() if name not in self.view):
            self.show()

    def _state(self) -> str:
        return self.runs[-1].background.state if self.runs else "new"

    def _status(self) -> str:
        if self.refused or not self.runs:
            return self.refused or "Nothing has been trained yet."
        run, state = self.runs[-1], self._state()
        if state == "failed":
            return f"The training failed: {run.background.error}"
        return f"{state.capitalize()}: {run.told or 'reading the data'}."


def field(name: str, value: Any, values: Sequence[Any] = (), **also: Any) -> dict[str, Any]:
    """A setting of the form: a menu where there are `values`, else what fits its value's type.

    Args:
        name: in the state; if it is not there, in the state's dict `changes`.
        value: where the state has none.
        values: to choose from.
        also: what else changes in the state when it is chosen.
    """
    kind = "pick" if values else KINDS[type(value)]
    return {"name": name, "kind": kind, "value": value, "values": list(values), "also": also}
