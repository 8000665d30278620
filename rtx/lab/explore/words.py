"""Many short words in a picture that is redrawn often: as outlines, far quicker to draw than one `Text` each."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from matplotlib.typing import ColorType

POINTS_PER_INCH = 72


class Words(PathCollection):
    """Words, each with the middle of its foot at a place in data coordinates; `write` replaces them all.

    Args:
        ax: where they stand.
        size: in points.
        raised: above their places, in points.
    """

    def __init__(self, ax: Axes, size: float = 8, raised: float = 2) -> None:
        super().__init__([], offsets=[], offset_transform=ax.transData, linewidths=0, clip_on=False)
        self.size, self.words = size, list[str]()
        figure = ax.get_figure()
        assert figure is not None
        points = Affine2D().translate(0, raised).scale(1 / POINTS_PER_INCH)
        self.set_transform(points + figure.dpi_scale_trans)
        ax.add_collection(self, autolim=False)

    def write(self, words: Sequence[str], places: Sequence[tuple[float, float]], colours: Sequence[ColorType]) -> None:
        """These words at these places in these colours."""
        self.words = list(words)
        self.set_paths([_outline(word, self.size) for word in words])
        self.set_offsets(places)
        self.set_facecolor(colours)


@cache
def _outline(word: str, size: float) -> Path:
    if not word.strip():
        return Path(np.zeros((0, 2)))
    path = TextPath((0, 0), word.replace("$", r"\$"), size=size, prop=FontProperties(family="DejaVu Sans"))
    return path.transformed(Affine2D().translate(-path.get_extents().x1 / 2, 0))
