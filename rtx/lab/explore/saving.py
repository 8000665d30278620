"""Saving what is seen: a figure as PNG or SVG, anything as a stand-alone HTML page."""

import re
from collections.abc import Callable
from html import escape
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from rtx.lab.plots import png, start_layout_afresh
from rtx.training.files import write_whole

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # XML allows none of them
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 sans-serif; }}
img {{ max-width: 100%; background: white; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #181818; color: #e8e8e8; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def save(path: str | Path, figure: Figure, html: Callable[[], str]) -> Path:
    """Write a file whole or not at all: .png and .svg of the figure, .html of the page that `html` makes.

    Raises:
        ValueError: if the ending is another one.
        OSError: if it cannot be written; what was there before stays.
    """
    path = Path(path)
    makers = {
        ".png": lambda: png(figure),
        ".svg": lambda: svg(figure),
        ".html": lambda: html().encode(),
    }
    if path.suffix not in makers:
        raise ValueError(f"path: expected an ending of {', '.join(makers)}, got {path.name!r}")
    write_whole(path, makers[path.suffix]())
    return path


def svg(figure: Figure) -> bytes:
    """The figure as SVG: the same figure gives the same bytes, and its text can be searched."""
    start_layout_afresh(figure)
    buffer = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "rtx", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", buffer.getvalue().decode()).encode()


def html_page(title: str, body: str) -> str:
    """A whole HTML page around `body`, which needs nothing from elsewhere."""
    return PAGE.format(title=escape(title), body=body)
