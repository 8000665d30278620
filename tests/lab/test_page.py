"""A page holds its data, its script and its controls' values, for a notebook and for a file of its own."""

import base64
import json
import struct
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns
import torch
from matplotlib.text import Text

from rtx.lab.explore import Page
from rtx.lab.explore.page import MOST, packed
from rtx.lab.explore.saving import svg
from rtx.lab.plots import freeze, heat_map, new_figure, png, small_png

SCRIPT = """\
import {
  slider,
} from "./page.js";
import { css } from "./colours.js";

export function show(page) { slider(page, "row", { max: 3 }); return ({ row }) => `row ${row}`; }
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "piece.js"
    path.write_text(SCRIPT)
    return path


def make(script: Path, data: dict[str, Any] | None = None) -> Page:
    figure, [ax] = new_figure(3, 2)
    ax.plot([1, 2, 3])
    return Page(script, data or {"table": torch.eye(3)}, figure, "move the row", row=1, word="a<b")


def test_data_become_json_of_four_digits(script: Path) -> None:
    data = {"x": np.array([[1 / 3, 2.0]]), "n": np.int64(7), "t": (torch.tensor(12345.678), None, True, "text")}
    assert make(script, data).data == {"x": [[0.3333, 2]], "n": 7, "t": [12350.0, None, True, "text"]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": torch.tensor(float("inf"))}, "data: .* inf"),
        ({"x": {1, 2}}, "data: .* set"),
        ({"x": "a" * MOST}, "data: .* 2,000,00"),
    ],
)
def test_data_that_cannot_be_shown_are_refused(script: Path, data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(script, data)


def test_packed_numbers_come_back(script: Path) -> None:
    values = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    found = packed(values)
    steps = np.array([number for (number,) in struct.iter_unpack("<H", base64.b64decode(found["steps"]))])
    back = found["low"] + steps * (found["high"] - found["low"]) / 65535
    assert found["shape"] == [5, 7]
    assert back.reshape(5, 7) == pytest.approx(values.numpy(), abs=1e-4)
    assert (packed(torch.ones(3))["low"], packed(torch.ones(3))["steps"]) == (1.0, base64.b64encode(bytes(6)).decode())


def test_the_module_is_whole(script: Path) -> None:
    esm = make(script)._esm
    assert "\nimport " not in esm and esm.count("export ") == 1
    assert "return ({ row }) => `row ${row}`" in esm and esm.count("function slider(") == esm.count("const css") == 1


def test_a_page_is_moved_from_code_and_a_notebook_gets_view_picture_and_caption(script: Path) -> None:
    page = make(script)
    page.set(row=2)
    assert page.state == {"row": 2, "word": "a<b"}
    with pytest.raises(ValueError, match="state: 'column'.* row, word"):
        page.set(column=1)
    bundle, _ = page._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == page.model_id
    assert base64.b64decode(bundle["image/png"]) == small_png(page.still)
    assert bundle["text/plain"] == "[explorer of row, word: move the row]"


def test_a_page_of_its_own_holds_everything(script: Path, tmp_path: Path) -> None:
    page = make(script, {"text": "</script><b>"})
    text = page.save(tmp_path / "page.html").read_text()
    assert text.count("</script>") == 1 and "http" not in text
    traits, _ = json.JSONDecoder().raw_decode(text.split("start(")[-1])
    assert traits == page.living() and json.loads(traits["data"]) == page.data


@pytest.fixture
def shown(script: Path) -> Page:
    return make(script)


@pytest.mark.parametrize("context", ["paper", "talk"])
def test_a_picture_is_the_same_however_often_it_is_drawn(context: str) -> None:
    with mpl.rc_context(sns.plotting_context(context)):
        figure, [ax] = new_figure(3, 2)
        heat_map(ax, torch.eye(3), "position s", "position t", label="weight")
        for draw in (png, small_png, svg):
            assert draw(figure) == draw(figure)


def test_fewer_colours_are_hardly_others() -> None:
    figure, [ax] = new_figure(3, 2)
    heat_map(ax, torch.rand(30, 30, generator=torch.Generator().manual_seed(0)), "position s", "position t")
    ax.set(xlim=(-9, 40), facecolor="0.94")  # a light grey that a coarse palette would take for white
    whole, small = (plt.imread(BytesIO(draw(figure)))[..., :3] for draw in (png, small_png))
    assert abs(whole - small).max() < 0.05 and (small[0, 0] == 1).all()


def test_a_settled_layout_stays_with_its_title_and_labels() -> None:
    figure, [ax] = new_figure(3, 2)
    heat_map(ax, torch.eye(3), "position s", "position t", "where it looks", label="weight")
    texts = [text for text in figure.findobj(Text) if text.get_text() in ("position s", "position t", "where it looks")]
    png(figure)
    loose = [text.get_window_extent().bounds for text in texts]
    freeze(figure)
    before = ax.get_position().bounds
    ax.set_yticks([0], ["a much longer name"])  # for which an axis label would make room
    svg(figure), png(figure)
    assert ax.get_position().bounds == before
    assert np.allclose([text.get_window_extent().bounds for text in texts], loose, atol=1)  # pixels


@pytest.mark.filterwarnings("ignore:Glyph")
def test_control_characters_in_a_label_leave_the_svg_valid() -> None:
    figure, [ax] = new_figure()
    ax.set(title="one\x1b[31m\x00two", xlabel="\x0c\ufffe")
    texts = [element.text for element in ElementTree.fromstring(svg(figure)).iter("{http://www.w3.org/2000/svg}text")]
    assert "one\ufffd[31m\ufffdtwo" in texts and "\ufffd\ufffd" in texts


def test_pictures_are_saved_as_png_and_svg(shown: Page, tmp_path: Path) -> None:
    figure = shown.still
    assert shown.save(tmp_path / "a.png").read_bytes() == png(figure)
    first, second = (shown.save(str(tmp_path / name)).read_bytes() for name in ("a.svg", "b.svg"))
    assert ElementTree.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
    assert first == second
    with pytest.raises(ValueError, match="path: .*'a.pdf'"):
        shown.save(tmp_path / "a.pdf")
    assert not (tmp_path / "a.pdf").exists()
