"""An explorer that trains beside the notebook. Where no kernel listens, it plays what was recorded of its runs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import traitlets

from rtx.lab import background
from rtx.lab.background import Background
from rtx.lab.explore.recording import Control, Recording, Seen, record

MOST = 6  # runs side by side
LATER = 10**9  # than the end of every run
NOTHING = "Choose the settings and press “Train”."
Form = Mapping[str, Any]
Recorded = tuple[dict[str, Control], Callable[..., Seen]]


class Live(Recording):
    """Settings, buttons, and a recording of the runs, which grows while one of them trains.

    The page presses a button by its trait `wish`. A new explorer ends the training of an older one of the same name,
    for example when its cell is run again.

    Args:
        name, title, caption: as in `Page`; its runs have that name, too.
        make: makes the next run from the form's values; a ValueError refuses the values.
        form: the form's fields in a state, by name: a list of values to choose from, or the value at first.
        recorded: the controls for runs by name, beside the control `run`, and what is seen at a setting.
        time: the control that moves through a run. It begins at the end of the newest run.
        state: of the form's menus, and of other controls, at first.

    Raises:
        ValueError: if a menu of the form has no such value.
    """

    wish = traitlets.Any(()).tag(sync=True)  # the last button, and how many were pressed

    def __init__(
        self,
        name: str,
        title: str,
        caption: str,
        make: Callable[..., Background],
        form: Callable[[Mapping[str, Any]], Form],
        recorded: Callable[[dict[str, Any]], Recorded],
        time: str = "update",
        **state: Any,
    ) -> None:
        background.end(name, seconds=1.0)
        self.make, self.form, self.recorded = make, form, recorded
        self.runs: list[Any] = []
        self.refused, self.newest = "", {"run": "", time: LATER}  # why the last settings were refused
        self._drawing = threading.RLock()
        begin = state | _values(form(state), state) | self.newest
        super().__init__(name, title, caption, {}, lambda: (NOTHING, []), "live.js", **begin)
        self.show()
        self.observe(self._follow, "state")
        self.observe(lambda change: self.press(change.new[0]), "wish")
        self.set(**state)

    def offered(self) -> Mapping[str, Sequence[Any]]:
        """The form's menus."""
        return {name: values for name, values in self.form(self.state).items() if isinstance(values, list)}

    def set(self, **state: Any) -> str:
        """Move controls from code one after the other, as a reader would, and return the sentence then seen.

        Raises:
            ValueError: if there is no control of a name, or its menu has no such value.
        """
        for name, value in state.items():
            super().set(**{name: value})
        return self.text

    def seen(self) -> Seen:
        """What is seen now, while no training changes it."""
        with self._drawing:
            return super().seen()

    def run(self) -> Self:
        """Press "Train", and wait until the training has ended; interrupting the cell stops it.

        If the settings are refused, nothing begins, and the status says why.
        """
        self.press("train")
        if not self.refused:
            self.runs[-1].wait()
        return self

    def press(self, button: str) -> None:
        """Press a button: "train", "pause", "resume", "stop" or "clear". One that is disabled does nothing."""
        state = self._state()
        if button == "train" and state != "running":
            self._begin()
        elif button == "clear" and state not in ("running", "paused"):
            self.runs, self.refused = [], ""
            self.show()
        elif self.runs and button in ("pause", "resume", "stop"):
            getattr(self.runs[-1], button)()

    def next_run(self) -> Background:
        """Return the run of the settings, not begun yet. A ValueError refuses the settings."""
        run = self.make(**{name: self.state[name] for name in self.form(self.state)})
        run.name, run.watch = self.name, self.show
        return run

    def show(self) -> None:
        """Record everything as it is now. A run that was stopped before there was anything to see is forgotten."""
        with self._drawing:
            self.runs = [run for run in self.runs if run.told or run.state != "stopped"]
            listed = [run for run in self.runs if run.told and run.group == self.runs[-1].group]
            self.controls, self.see = {}, lambda: (NOTHING, [])
            if listed:
                runs = {f"{i}: {run.title}": run for i, run in enumerate(listed, 1)}
                controls, self.see = self.recorded(runs)
                self.controls = {"run": Control("run", list(runs)), **controls}
            table = [run.facts() for run in listed if run.facts()]
            live = {"form": self.form(self.state), "table": table, "status": self._status(), "state": self._state()}
            self.data = record(self.controls, self.see) | live

    def _begin(self) -> None:
        self.refused = ""
        try:
            run = self.next_run()
        except ValueError as error:
            self.refused = background.sentence(error)
        else:
            with self._drawing:
                self.runs = [*self.runs, run][-MOST:]
            run.start()
            self.state = self.state | self.newest
        self.show()

    def _follow(self, change: Any) -> None:
        """Give the fields of another form, for example that of another model, their first values."""
        before, state = self.data["form"], change.new
        if self.form(state) != before:
            self.show()
            self.state = {name: state[name] for name in state if name not in before} | _values(self.form(state), state)

    def _state(self) -> str:
        return self.runs[-1].state if self.runs else "new"

    def _status(self) -> str:
        if self.refused or not self.runs:
            return self.refused or "Nothing has been trained yet."
        run = self.runs[-1]
        if run.state == "failed":
            return f"The training failed: {run.error}"
        return f"{run.state.capitalize()}: {run.told or 'reading the data'}."


def _values(form: Form, state: Mapping[str, Any]) -> dict[str, Any]:
    """The fields' first values; of a menu, that of the state if it is offered."""
    menus = {name: values for name, values in form.items() if isinstance(values, list)}
    return {**form, **{name: state[name] if state.get(name) in menu else menu[0] for name, menu in menus.items()}}
