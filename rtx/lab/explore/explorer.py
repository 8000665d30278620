"""The frame of every explorer: controls, a kept figure, a sentence, and a picture for where widgets do not run."""

import base64
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from rtx.lab.explore.access import Access, status
from rtx.lab.explore.cells import free_earlier
from rtx.lab.explore.moving import move
from rtx.lab.explore.saving import html_page, save
from rtx.lab.inline import smaller
from rtx.lab.plots import quick_png
from rtx.nn.validate import check_choice

CONTROL = {"width": "auto", "flex": "1 1 220px", "min_width": "200px", "max_width": "300px"}
"""The layout of a control without a width of its own: three stand in a row, and on a narrow page below one another."""


def picture_layout(width: str) -> widgets.Layout:
    """As wide as that, or as there is room for: a picture has margins of 2 pixels, which the room must hold, too."""
    return widgets.Layout(width=width, max_width="calc(100% - 4px)", align_self="flex-start")


class Explorer:
    """Controls above a picture that follows them.

    The figure is kept and its artists are moved: that is twice as fast as drawing anew. Displayed as the last line
    of a cell, it is live in JupyterLab; on a page without a kernel its picture and sentence stand instead.

    Args:
        figure: drawn once; `update` moves its artists.
        update: called with each control's value by name; returns one sentence on what is seen.
        caption: what to try.
        controls: at most three ipywidgets with a `value`, by the name of the argument they set. One that has a single
            value to offer is disabled.

    Raises:
        ValueError: if there is no control, or there are more than three.
    """

    def __init__(self, figure: Figure, update: Callable[..., str], caption: str, **controls: Any) -> None:
        if not 1 <= len(controls) <= 3:
            raise ValueError(f"controls: expected one to three, got {len(controls)}: {', '.join(controls)}")
        self.figure, self.update, self.caption, self.controls = figure, update, caption, controls
        width = f"{figure.get_figwidth() * 100:.0f}px"
        self.picture = widgets.Image(format="png", layout=picture_layout(width))
        self.sentence = widgets.HTML()
        for control in controls.values():
            if getattr(control, "min", 0) == getattr(control, "max", 1):  # a slider of one value breaks in a browser
                control.max, control.disabled = control.min + 1, True
            control.style.description_width = "initial"
            if control.layout.width is None:
                for name, value in CONTROL.items():
                    setattr(control.layout, name, value)
            control.observe(self._redraw, "value")
        hint = widgets.HTML(f"<i>Try: {escape(caption)}</i>")
        row = widgets.HBox(list(controls.values()), layout=widgets.Layout(flex_flow="row wrap"))
        self.widget = widgets.VBox([row, self.picture, self.sentence, hint, Access()])
        free_earlier(self, self.widget)
        self._redraw()
        self.picture.value = smaller(self.picture.value)  # the one that a notebook keeps with its widgets

    def set(self, **values: Any) -> str:
        """Move controls from code, one after the other, as a slider would; return the sentence then shown.

        Raises:
            ValueError: if there is no control of a name, or it has no such value; what was moved before it stays.
        """
        for name in values:
            check_choice("control", name, self.controls)
        for name, value in values.items():
            move(name, self.controls[name], value)
        return self.text

    def save(self, path: str | Path) -> Path:
        """Write what is seen now: the picture (.png, .svg), or a page with the picture and the sentence (.html).

        Raises:
            ValueError: if `path` has another ending.
            OSError: if it cannot be written; what was there before stays.
        """
        return save(path, self.figure, self._html)

    def _html(self) -> str:
        source = f"data:image/png;base64,{base64.b64encode(self.picture.value).decode()}"
        text = escape(self.text)
        return html_page(self.text, f'<img src="{source}" alt="{text}">\n<p>{text}</p>')

    def _redraw(self, _change: object = None) -> None:
        self.text = self.update(**{name: control.value for name, control in self.controls.items()})
        self.picture.value = quick_png(self.figure)
        self.sentence.value = status(self.text, seen=True)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        still = {
            "image/png": base64.b64encode(smaller(self.picture.value)).decode(),
            # no sentence: it may hold a trained model's numbers, whose last digits differ between processors
            "text/plain": f"[explorer of {', '.join(self.controls)}: {self.caption}]",
        }
        size = {"image/png": {"width": int(self.figure.get_figwidth() * 100)}}
        return self.widget._repr_mimebundle_() | still, size
