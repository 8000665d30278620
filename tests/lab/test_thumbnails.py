"""The README shows pictures of four notebooks: small, and of the notebooks as they are."""

import re
from pathlib import Path

import pytest
from papers import mc_rnn_4
from PIL import Image
from thumbnails import CHOSEN, FOLDER, NOTEBOOKS, digest, pictures

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_each_and_says_what_it_is() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(CHOSEN)
    for name in CHOSEN:
        link = rf'<a href="notebooks/{name}\.ipynb"><img src="figures/notebooks/{name}\.png" [^>]*alt="([^"]+)"'
        assert 20 < len(re.search(link, README)[1]) < 120


@pytest.mark.parametrize("name", CHOSEN)
def test_it_is_that_of_the_notebook_as_it_is(name: str) -> None:
    png = pictures(NOTEBOOKS / f"{name}.ipynb")[CHOSEN[name]]
    assert Image.open(FOLDER / f"{name}.png").text["Source"] == digest(png), "run: python figures/make.py thumbnails"


def test_the_figure_of_translators_has_a_colour_for_each_row_of_the_ledger() -> None:
    figure = mc_rnn_4()
    said = [text.get_text().split(",")[0] for text in figure.axes[0].get_legend().get_texts()]
    assert len(said) == len(set(said)) and {"baseline", "mc-rnn-4", "r-transformer"} <= set(said)
