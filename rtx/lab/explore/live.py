"""An explorer whose picture also follows work in the background: it has a button to begin, and to pause."""

import threading
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Self

import ipywidgets as widgets
from matplotlib.figure import Figure

from rtx.lab import background
from rtx.lab.background import Background
from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import quick_png


class LiveExplorer(Explorer):
    """Controls and a picture as an `Explorer`'s, and a button, "train", for the work that belongs to the controls.

    Moving a control stops the work that was for other values, unless it is one of `looking`. An explorer of this name
    that is made again, as when its cell is run again, ends what the one before had begun.

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
        self.work, self.current = work, None
        self._drawing = threading.RLock()
        self._moving = False  # the button, by ourselves
        super().__init__(figure, update, caption, **controls)
        self.train = widgets.ToggleButton(False, description="train", tooltip="begin, pause or go on")
        self.train.layout.width = "100px"
        self.status = widgets.HTML()
        self.train.observe(self._toggle, "value")
        first, *rest = self.widget.children
        self.widget.children = [first, widgets.HBox([self.train, self.status]), *rest]
        for argument, control in controls.items():
            if argument not in looking:
                control.observe(self._drop, "value")

    current: Background | None

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
        elif self.current is not None and self.current.state == "paused":
            self.current.resume()
        else:
            self.current = self.work(self._follow, **{name: one.value for name, one in self.controls.items()})
            self.current.start()

    def _drop(self, _change: object) -> None:
        """The work is for other values than the controls now show."""
        if self.current is not None:
            self.current.stop(seconds=0)
            self.current = None
        self._show_state()

    def _follow(self) -> None:
        """Called by the work, in its thread."""
        self._show_state()
        self._redraw()

    def _show_state(self) -> None:
        state = "new" if self.current is None else self.current.state
        said = self.current.error if self.current is not None and state == "failed" else state
        self.status.value = f'<span role="status">{escape(said)}</span>'
        self._moving = True
        self.train.value = state == "running"
        self._moving = False

    def _redraw(self, _change: object = None) -> None:
        with self._drawing:
            self.text = self.update(**{name: control.value for name, control in self.controls.items()})
            self.picture.value = quick_png(self.figure)
            self.sentence.value = escape(self.text)
