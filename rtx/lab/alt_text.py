"""What a screen reader says where others see a notebook's figure: its titles, what its axes are, its lines by name.

The text is stored beside the picture, where `make book` finds it, and `jupyter nbconvert --to html --template classic`;
JupyterLab and its own export to HTML show none.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def alt_text(figure: Figure) -> str:
    """A sentence for the whole figure and one for each of its axes; maths without its dollar signs."""
    whole = (figure.get_suptitle(), *map(_of_axes, figure.axes), figure.get_supxlabel(), figure.get_supylabel())
    return ". ".join(dict.fromkeys(filter(None, map(_plain, whole))))


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


def _plain(text: str) -> str:
    return " ".join(text.replace("$", "").split())


@dataclass(frozen=True)
class _WithAltText:
    """Draws a figure as IPython's own function does, and says what it shows."""

    draw: Callable[[Figure], Any]

    def __call__(self, figure: Figure) -> Any:
        drawn = self.draw(figure)
        text = alt_text(figure)
        return (drawn, {"alt": text}) if isinstance(drawn, str) and text else drawn


def store_alt_text() -> None:
    """From now on, store the alt text of each figure that this kernel shows inline; elsewhere, do nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not mpl.get_backend().endswith("inline"):
        return
    import matplotlib_inline.backend_inline  # noqa: F401  (now, as it sets the function that draws when it is imported)

    printers = shell.display_formatter.formatters["image/png"].type_printers
    draw = printers.get(Figure)
    if draw is not None and not isinstance(draw, _WithAltText):
        printers[Figure] = _WithAltText(draw)
