"""What a notebook keeps of a figure: its picture in few colours, and what a screen reader says where others see it.

The text, the figure's titles, what its axes are, and its lines by name, is stored beside the picture, where `make site`
finds it, and `jupyter nbconvert --to html --template classic`; JupyterLab and its own export to HTML show none.
"""

import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image


def smaller(png: bytes) -> bytes:
    """A PNG with 256 of its colours: half of the bytes, or less."""
    whole, buffer = Image.open(BytesIO(png)).convert("RGB"), BytesIO()
    # the white of octree, the default, is not white
    few = whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(buffer, "PNG")
    return buffer.getvalue()


def alt_text(figure: Figure) -> str:
    """A sentence for the whole figure and one for each of its axes; maths without its dollar signs."""
    parts = (figure.get_suptitle(), *map(_of_axes, figure.axes), figure.get_supxlabel(), figure.get_supylabel())
    plain = (" ".join(part.replace("$", "").split()) for part in parts)
    return ". ".join(dict.fromkeys(filter(None, plain)))


def _of_axes(ax: Axes) -> str:
    legend = ax.get_legend()
    lines = [text.get_text() for text in legend.get_texts()] if legend else []
    said = {
        "": ax.get_title(loc="left") or ax.get_title(),
        "across": ax.get_xlabel(),
        "colour" if ax.get_label() == "<colorbar>" else "up": ax.get_ylabel(),
        "with": ", ".join(lines),
    }
    return "; ".join(f"{name}: {text}" if name else text for name, text in said.items() if text)


def keep_figures_well() -> None:
    """From now on, store each figure that this kernel shows inline in this way; elsewhere, do nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not mpl.get_backend().endswith("inline"):
        return
    import matplotlib_inline.backend_inline  # noqa: F401  (now, as it sets the function that draws when it is imported)

    printers = shell.display_formatter.formatters["image/png"].type_printers
    draw = printers.get(Figure)
    if draw is not None and getattr(draw, "func", None) is not _kept:
        printers[Figure] = partial(_kept, draw)


def _kept(draw: Callable[[Figure], Any], figure: Figure) -> Any:
    """Draw a figure as IPython's own function `draw` does, but in few colours, and say what it shows."""
    drawn = draw(figure)
    if not isinstance(drawn, str):
        return drawn
    picture, text = b64encode(smaller(b64decode(drawn))).decode(), alt_text(figure)
    return (picture, {"alt": text}) if text else picture
