"""Every notebook has its picture in the README's table, small, and the same bytes for the same notebook."""

from io import BytesIO
from pathlib import Path

import pytest
from papers import mc_rnn_4
from PIL import Image
from thumbnails import CHOSEN, COLOURS, FOLDER, HEIGHT, NOTEBOOKS, WIDTH, digest, pictures, thumbnail

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_every_notebook_has_one_and_no_other() -> None:
    names = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert set(CHOSEN) == names == {path.stem for path in FOLDER.glob("*.png")}
    assert sum(path.stat().st_size for path in FOLDER.glob("*.png")) < 300_000


@pytest.mark.parametrize("name", CHOSEN)
def test_the_readme_shows_it_and_says_what_it_is(name: str) -> None:
    (row,) = (line for line in README.splitlines() if f"(notebooks/{name}.ipynb) | " in line)
    source, alt = row.split('<img src="')[1].split('" width="220" alt="')
    assert source == f"figures/notebooks/{name}.png" and 20 < len(alt.split('"')[0]) < 120


@pytest.mark.parametrize("name", CHOSEN)
def test_it_is_that_of_the_notebook_as_it_is(name: str) -> None:
    png = pictures(NOTEBOOKS / f"{name}.ipynb")[CHOSEN[name]]
    assert Image.open(FOLDER / f"{name}.png").text["Source"] == digest(png), "run: python figures/make.py thumbnails"


def test_a_thumbnail_is_small_in_few_bytes_and_keeps_its_shape_and_colours() -> None:
    png = pictures(NOTEBOOKS / "10_read_digits.ipynb")[CHOSEN["10_read_digits"]]
    small, whole = Image.open(BytesIO(thumbnail(png))), Image.open(BytesIO(png))
    assert small.width <= WIDTH and small.height <= HEIGHT
    assert small.width / small.height == pytest.approx(whole.width / whole.height, rel=0.02)
    assert thumbnail(png) == thumbnail(png)
    colours = [colour for _, colour in small.convert("RGB").getcolors(1000)]
    assert 20 < len(colours) <= COLOURS
    assert [colour for colour in colours if colour[0] > 200 and colour[2] < 60]  # the orange of one thin line


def test_the_figure_of_translators_has_a_colour_for_each_row_of_the_ledger() -> None:
    figure = mc_rnn_4()
    said = [text.get_text().split(",")[0] for text in figure.axes[0].get_legend().get_texts()]
    assert len(said) == len(set(said)) and {"baseline", "mc-rnn-4", "r-transformer"} <= set(said)
