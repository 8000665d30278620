"""For whoever moves an explorer by keyboard, or hears it: names, values, and keys that JupyterLab leaves alone."""

from html import escape
from pathlib import Path

import anywidget

SCRIPT = Path(__file__).with_name("access.js")


class Access(anywidget.AnyWidget):
    """An unseen widget that mends the box it is a child of, a `VBox` of ipywidgets, as access.js says."""

    _esm = SCRIPT.read_text(encoding="utf-8")


def status(text: str, seen: bool = False) -> str:
    """HTML of a sentence that is read aloud when it changes; if it tells what is `seen`, it stands for the picture."""
    kind = ' class="rtx-seen"' if seen else ""
    return f'<span role="status"{kind} style="white-space: pre-wrap">{escape(text)}</span>'
