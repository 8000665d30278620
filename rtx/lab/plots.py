"""One plotting style, and the pictures that several notebooks share. Plots take arrays, never a model."""

from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm
from matplotlib.font_manager import get_font_names
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

CJK_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "WenQuanYi Micro Hei", "Arial Unicode MS"),
)
"""Fonts for Chinese, Japanese and Korean labels, which DejaVu Sans does not have. Those that are installed are used."""

COLOURS = sns.color_palette("colorblind")
"""Colours that stay apart for readers who confuse red and green."""


def style() -> None:
    """Set the house's style for all figures: white, sans serif, colour-blind safe, no needless lines."""
    sns.set_theme(context="notebook", style="ticks", palette="colorblind")
    mpl.rcParams |= {
        # DejaVu Sans ships with matplotlib, so the picture is the same on every machine
        "font.family": ["DejaVu Sans", *(font for font in CJK_FONTS if font in get_font_names())],
        "figure.dpi": 110,
        "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.labelsize": 10,
        "image.cmap": "viridis",
    }


def whole_numbers(*axes: Axis) -> None:
    """Matplotlib's own labels, but for those that are no whole numbers: there is no position 2.5."""
    for axis in axes:
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True, min_n_ticks=1))


def as_array(values: ArrayLike) -> NDArray[Any]:
    """The numbers as NumPy's; those of a tensor wherever it is, and without its way back."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def receptive_field_map(ax: Axes, values: ArrayLike, title: str = "", low: float = 1e-4) -> AxesImage:
    """Which input (column) moves which output (row), in logarithmic colours; where none does, white."""
    moved = np.ma.masked_equal(as_array(values), 0)
    rows, columns = moved.shape
    extent = (0.5, columns + 0.5, rows + 0.5, 0.5)
    image = ax.imshow(moved, norm=LogNorm(low, 1), interpolation="nearest", extent=extent)
    ax.set(xlabel="input position s", ylabel="output position t", title=title)
    whole_numbers(ax.xaxis, ax.yaxis)
    return image


def piano_roll(ax: Axes, roll: ArrayLike, title: str = "") -> AxesImage:
    """A (frames, 88) roll, from 0 to 1, with time to the right and pitch upwards, cropped to the notes in use."""
    notes, lowest = as_array(roll).astype(float).T, 21  # (88, frames); the MIDI number of the first key
    image = ax.imshow(notes, aspect="auto", interpolation="nearest", origin="lower", cmap="Blues", vmin=0, vmax=1)
    image.set_extent((0.5, notes.shape[1] + 0.5, lowest - 0.5, lowest + len(notes) - 0.5))
    used = np.flatnonzero(notes.max(1) > 0.05)
    low, high = (used[0], used[-1]) if len(used) else (0, len(notes) - 1)  # all keys, if none sounds
    ax.set_ylim(lowest + low - 2, lowest + high + 2)
    ax.set(xlabel="frame", ylabel="note (MIDI number)", title=title)
    whole_numbers(ax.xaxis)
    return image
