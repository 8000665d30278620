"""An explorer whose picture also follows work in the background: it has a button to begin, and to pause."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

import ipywidgets as widgets
from matplotlib.figure import Figure

from rtx.lab import background
from rtx.lab.background import Background
from rtx.lab.explore.access import status
from rtx.lab.explore.explorer import Explorer


class LiveExplorer(Explorer):
    """Controls and a picture as an `Explorer`'s, and a button, "train", for the work that belongs to the controls.

    Moving a control, unless it is one of `looking`, pauses the work that was for other values; moved back, it can go
    on, if nothing else was begun meanwhile. An explorer of this name that is made again, as when its cell is run again,
    ends what the one before had begun.

    Args:
        figure: drawn once; `update` moves its artists.
        update: called with each control's value by name; returns one sentence on what is seen.
        work: called with each control's value and a function that redraws; the work to start, which is not begun yet.
        caption: what to try.
        name: of the explorer.
        looking: controls that change what is seen only: moving them leaves the work alone.
        controls: at most three ipywidgets with a `value`, by the name of the argument they set.
    """

    def __init__(
        self,
        figure: Figure,
        update: Callable[..., str],
        work: Callable[..., Background],
        caption: str,
        name: str,
        looking: Sequence[str] = (),
        **controls: Any,
    ) -> None:
        background.end(name, seconds=1.0)
        self.work = work
        self.works: dict[tuple[Any, ...], Background] = {}  # the last one for these values of the controls
        self.working = [control for argument, control in controls.items() if argument not in looking]
        self._drawing = threading.RLock()
        self._moving = False  # the button, by ourselves
        super().__init__(figure, update, caption, **controls)
        self.train = widgets.ToggleButton(False, description="train", tooltip="begin, pause or go on")
        self.train.layout.width = "100px"
        self.status = widgets.HTML()
        self.train.observe(self._toggle, "value")
        first, *rest = self.widget.children
        self.widget.children = [first, widgets.HBox([self.train, self.status]), *rest]
        for control in self.working:
            control.observe(self._leave, "value")
        self._chosen = self._choice()
        self._show_state()

    @property
    def current(self) -> Background | None:
        """The last work for what the controls now show."""
        return self.works.get(self._choice())

    def _choice(self) -> tuple[Any, ...]:
        return tuple(control.value for control in self.working)

    def run(self) -> Self:
        """Train to the end, and wait for it; interrupting the cell stops the training."""
        self.train.value = True
        if self.current is not None:
            self.current.wait()
        return self

    def _toggle(self, _change: object) -> None:
        if self._moving:
            return
        if not self.train.value:
            if self.current is not None:
                self.current.pause()
        elif self.current is not None and self.current.alive:
            self.current.resume()
        else:
            work = self.work(self._follow, **{name: one.value for name, one in self.controls.items()})
            self.works[self._choice()] = work
            work.start()

    def _leave(self, _change: object) -> None:
        """The work is for other values than the controls now show."""
        if left := self.works.get(self._chosen):
            left.pause()
        self._chosen = self._choice()
        self._show_state()

    def _follow(self) -> None:
        """Called by the work, in its thread."""
        self._show_state()
        self._redraw()

    def _show_state(self) -> None:
        current = self.current
        state = "not started" if current is None else current.state
        said = current.error if current is not None and state == "failed" else state
        self.status.value = status(said)
        self._moving = True
        self.train.value = state == "running"
        self._moving = False

    def _redraw(self, _change: object = None) -> None:
        with self._drawing:
            super()._redraw()
