"""A reader opens a notebook in a browser, runs it, and moves a slider: the picture changes."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from notebook_page import LOOPBACK, Notebook
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = [
    "00_start_here",
    "11_model_music",
    "13_model_language",
    "14_translate_and_summarise",
]


EXPLORERS = [
    "explore.block()",
    "explore.cost()",
    "explore.pooling(rtx.FeedForwardAttention(), rtx.tasks.task_by_name('add', length=20, size=100).split('test')[:5])",
    "explore.reach()",
    "explore.window(torch.randn(9, 5))",
    "explore.xray(rtx.RNN(4, 2), torch.randn(1, 8, 4))",
]


def test_each_explorer_on_a_page_of_its_own_is_moved(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    page = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    code = ["import torch, rtx\nfrom rtx.lab import explore", *EXPLORERS]
    page.cells = [nbformat.v4.new_code_cell(one) for one in code]
    nbformat.write(page, tmp_path / "explorers.ipynb")
    notebook = open_notebook(tmp_path / "explorers.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    moved = 0
    for slider, image in notebook.explorers():
        before = image.get_attribute("src")
        assert before
        notebook.press(slider)
        expect(image).not_to_have_attribute("src", before, timeout=30_000)
        moved += 1
    assert moved == len(EXPLORERS)
    assert notebook.hosts == {LOOPBACK}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_picture_follows_the_slider(open_notebook: Callable[[Path], Notebook], name: str) -> None:
    notebook = open_notebook(FOLDER / f"{name}.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    slider, image = notebook.explorer()
    for move in (notebook.press, notebook.press, notebook.drag):
        before = image.get_attribute("src")
        assert before
        move(slider)
        expect(image).not_to_have_attribute("src", before, timeout=30_000)
    assert notebook.hosts == {LOOPBACK}


def test_errors_and_requests_to_other_hosts_are_seen(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    """The checks above can fail."""
    page = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    page.cells = [
        nbformat.v4.new_code_cell(
            "from IPython.display import HTML\nHTML('<img src=\"http://example.org/picture.png\">')"
        ),
        nbformat.v4.new_code_cell("1 / 0"),
    ]
    nbformat.write(page, tmp_path / "faulty.ipynb")
    notebook = open_notebook(tmp_path / "faulty.ipynb")
    notebook.run_all()
    assert notebook.errors() == ["ZeroDivisionError: division by zero"]
    with pytest.raises(AssertionError, match="no cell has a slider"):
        notebook.explorer()
    assert notebook.hosts == {LOOPBACK, "example.org"}
