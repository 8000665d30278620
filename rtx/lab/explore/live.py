"""An explorer that trains beside the notebook. Where no kernel listens, it plays what was recorded of its runs."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import traitlets
from matplotlib.figure import Figure

from rtx.lab import background
from rtx.lab.background import Background
from rtx.lab.explore.page import Page
from rtx.lab.explore.recording import Control, Panel, Values, draw, record

MOST = 6  # runs side by side
KINDS = {bool: "box", int: "whole", float: "number", str: "text"}
NOTHING = "Choose the settings and press “Train”."
Recorded = tuple[dict[str, Control], dict[str, Panel], Callable[..., Values]]


class Live(Page):
    """Settings, buttons, and a recording of the runs, which grows while one of them trains.

    The page presses a button by its trait `wish`. A new explorer ends the training of an older one of the same name,
    for example when its cell is run again.

    Args:
        name: of the page that the site gives it, and of its runs.
        title: of the explorer.
        caption: what to try.
        view: controls of the recording, which change only what is seen. A value that is not offered means the last one.
        settings: controls of the form. The next run is made of them.

    Raises:
        ValueError: if a menu of the form has no such value.
    """

    wish = traitlets.Any(()).tag(sync=True)  # the last button, and how many were pressed

    def __init__(self, name: str, title: str, caption: str, view: dict[str, Any], **settings: Any) -> None:
        background.end(name, seconds=1.0)
        self.runs: list[Any] = []
        self.refused, self.view = "", view  # why the last settings were refused; where the view is at first
        self._drawing = threading.RLock()
        super().__init__(Path(__file__).with_name("live.js"), {}, Figure(), caption, title=title, **settings, **view)
        self.name = name
        self._check(settings)
        self.show()
        self.observe(self._move, "state")
        self.observe(lambda change: self.press(change.new[0]), "wish")

    @abstractmethod
    def make(self) -> Background:
        """Return the run of the settings, not begun yet.

        Raises:
            ValueError: if there is none.
        """

    @abstractmethod
    def form(self) -> list[dict[str, Any]]:
        """Return the fields of the form, each made by `field`."""

    @abstractmethod
    def recorded(self) -> Recorded:
        """Return what `record` needs to record the runs as far as they are."""

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each run, for a table below the picture."""
        return []

    def set(self, **state: Any) -> str:
        """Move controls from code, as a reader would, and return the sentence then seen.

        Raises:
            ValueError: if there is no control of a name, or its menu has no such value.
        """
        self._check(state)
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
            self.runs[-1].wait()
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
            self.runs[-1].stop(seconds=1.0)
        elif self.runs and button in ("pause", "resume"):
            getattr(self.runs[-1], button)()

    def show(self) -> None:
        """Record everything as it is now. A run that was stopped before there was anything to see is forgotten."""
        with self._drawing:
            self.runs = [run for run in self.runs if run.told or run.state != "stopped"]
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

    def _check(self, state: dict[str, Any]) -> None:
        for one in self.form():
            name, values = one["name"], one["values"]
            if values and state.get(name, "") not in ("", *values):
                raise ValueError(f"{name}: expected one of {', '.join(map(str, values))}, got {state[name]!r}")

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
            run.start()
            controls = self._recorded[0]
            newest = {name: value for name, value in self.view.items() if value not in controls[name].values}
            self.state = self.state | newest
        self.show()

    def _move(self, change: Any) -> None:
        if any(change.old[name] != value for name, value in change.new.items() if name not in self.view):
            self.show()

    def _state(self) -> str:
        return self.runs[-1].state if self.runs else "new"

    def _status(self) -> str:
        if self.refused or not self.runs:
            return self.refused or "Nothing has been trained yet."
        run = self.runs[-1]
        if run.state == "failed":
            return f"The training failed: {run.error}"
        return f"{run.state.capitalize()}: {run.told or 'reading the data'}."


def field(name: str, value: Any, values: Sequence[Any] = ()) -> dict[str, Any]:
    """A setting of the form: a menu of `values` if there are some, else what fits the type of `value`.

    Args:
        name: in the state; if it is not there, in the state's dict `changes`.
        value: where the state has none, or none of the menu's.
        values: to choose from.
    """
    return {"name": name, "kind": "pick" if values else KINDS[type(value)], "value": value, "values": list(values)}
