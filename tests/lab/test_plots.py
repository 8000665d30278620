"""Pictures put each number where its axes say that it is."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import seaborn as sns
import torch
from drawing import new_figure, png
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._g_l_y_f import Glyph
from matplotlib import font_manager
from matplotlib.axis import Axis
from numpy.typing import NDArray

from rtx.lab.plots import CJK_FONTS, piano_roll, receptive_field_map, style


def test_a_roll_has_time_to_the_right_and_each_note_at_its_number() -> None:
    roll = np.zeros((3, 88))
    roll[0, 39], roll[2, 46] = 1, 0.5  # C4 in the first frame, G4 faintly in the third
    _, [ax] = new_figure()
    image = piano_roll(ax, roll)
    left, right, bottom, top = image.get_extent()
    shown = np.asarray(image.get_array())
    assert image.origin == "lower" and shown.shape == (88, 3)
    where = {
        (left + (t + 0.5) * (right - left) / 3, bottom + (row + 0.5) * (top - bottom) / 88): shown[row, t]
        for row, t in np.argwhere(shown > 0)
    }
    assert where == {(1, 60): 1, (3, 67): 0.5}
    assert ax.get_ylim() == (58, 69)  # two keys around those in use


def test_a_map_of_receptive_fields_counts_from_one_and_leaves_nothing_blank() -> None:
    _, [ax] = new_figure()
    moved = np.array([[0.5, 0.0, 0.0], [0.25, 0.125, 0.0]])
    image = receptive_field_map(ax, moved)
    assert list(image.get_extent()) == [0.5, 3.5, 2.5, 0.5] and image.origin == "upper"
    shown = image.get_array()
    assert shown is not None and shown.mask.tolist() == (moved == 0).tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("input position s", "output position t")
    assert image.norm(0.01) == pytest.approx(0.5)  # half way from 1e-4 to 1, by its logarithm


class OnAGpu(torch.Tensor):
    """Refuses what torch refuses of a tensor on a GPU."""

    def __array__(self, dtype: object = None) -> NDArray[Any]:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        return self.as_subclass(torch.Tensor)


def test_pictures_take_numbers_from_a_gpu() -> None:
    values = torch.rand(3, 88).requires_grad_()
    for draw in (receptive_field_map, piano_roll):
        here, there = (
            draw(new_figure()[1][0], one).get_array() for one in (values.detach(), values.as_subclass(OnAGpu))
        )
        assert np.array_equal(np.asarray(here), np.asarray(there))


def labelled(axis: Axis) -> list[float]:
    """The places of an axis that have a label in view."""
    low, high = sorted(axis.get_view_interval())
    return [place for place in axis.get_ticklocs() if low <= place <= high]


@pytest.mark.parametrize("length", [1, 3, 20])
def test_positions_and_frames_are_whole_numbers(length: int) -> None:
    _, [map_of, roll] = new_figure(columns=2)
    receptive_field_map(map_of, np.eye(length))
    piano_roll(roll, np.eye(length, 88))
    for axis in (map_of.xaxis, map_of.yaxis, roll.xaxis):
        places = labelled(axis)
        assert places and all(place == round(place) for place in places), places


def test_an_installed_font_shows_chinese_labels(tmp_path: Path) -> None:
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", "middle"])
    builder.setupCharacterMap({ord("中"): "middle"})
    box = TTGlyphPen(None)
    for point, draw in (((0, 0), box.moveTo), ((0, 800), box.lineTo), ((800, 0), box.lineTo)):
        draw(point)
    box.closePath()
    builder.setupGlyf({".notdef": Glyph(), "middle": box.glyph()})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "middle": (1000, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": CJK_FONTS[0], "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "font.ttf")
    before = font_manager.fontManager.ttflist.copy()
    try:
        font_manager.fontManager.addfont(tmp_path / "font.ttf")
        with mpl.rc_context(), warnings.catch_warnings(action="error"):  # "Glyph missing from font(s)"
            style()
            figure, [ax] = new_figure()
            ax.set_title("a 中")
            png(figure)
    finally:
        font_manager.fontManager.ttflist[:] = before


@pytest.mark.parametrize("context", ["paper", "talk"])
def test_a_picture_is_the_same_whenever_it_is_made(context: str) -> None:
    def drawn() -> bytes:
        figure, [ax] = new_figure(3, 2)
        figure.colorbar(ax.imshow(np.eye(3)), ax=ax, label="weight")
        return png(figure)

    with mpl.rc_context(sns.plotting_context(context)):
        assert drawn() == drawn()
