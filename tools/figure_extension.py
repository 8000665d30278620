"""An IPython extension that stores figures for readers of the notebook files: in few colours, and with alt text.

`tools/build_notebooks.py` loads it into each kernel. The alt text has the figure's titles, what its axes are, and its
lines by name. `make site` writes it beside the picture, and so does `jupyter nbconvert --to html --template classic`.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import matplotlib.pyplot as plt
import matplotlib_inline.backend_inline  # noqa: F401  (sets the function that draws figures)
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Store each figure that this kernel shows in this way."""
    plt.switch_backend("inline")
    printers = shell.display_formatter.formatters["image/png"].type_printers
    printers[Figure] = partial(_stored, printers[Figure])


def _stored(draw: Callable[[Figure], str], figure: Figure) -> Any:
    """Draw a figure as IPython's own function `draw` does, but in few colours, and say what it shows."""
    picture, text = b64encode(smaller(b64decode(draw(figure)))).decode(), alt_text(figure)
    return (picture, {"alt": text}) if text else picture


def smaller(png: bytes) -> bytes:
    """Return a PNG with 256 of its colours: half of the bytes, or less."""
    whole, buffer = Image.open(BytesIO(png)).convert("RGB"), BytesIO()
    # the white of octree, the default, is not white
    whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(buffer, "PNG")
    return buffer.getvalue()


def alt_text(figure: Figure) -> str:
    """Return a sentence for the whole figure and one for each of its axes; maths without its dollar signs."""
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
