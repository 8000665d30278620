"""A reader opens a notebook in a browser, runs it, and moves a slider: the picture changes."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from notebook_page import LOOPBACK, Notebook
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "notebooks"


SETUP = """\
import torch, rtx
from rtx.lab import explore
from rtx.models import rnnsearch
from rtx.tasks import task_by_name
from rtx.tasks.vocabulary import vocabulary

torch.manual_seed(0)
torch.set_num_threads(1)
dates = task_by_name("dates", size=300, vocabulary=120)
translator = rnnsearch(dates.inputs, dates.outputs, d_model=8, layers=1, bidirectional=False)
letters = vocabulary("characters", list("abcdefgh"))
text = rtx.LanguageModel(rtx.RNN(8), letters.size)
torch.nn.init.normal_(text.embedding.weight, std=3)
tune = torch.zeros(9, 88)
tune[::2, 40] = 1"""
EXPLORERS = [
    "explore.beam(translator, dates.texts, '8. März 1987', width=2)",
    "explore.block()",
    "explore.cost()",
    "explore.digits(rtx.build('digits', 'gru', d_model=8, layers=1), task_by_name('digits').split('test')[:4])",
    "explore.pooling(rtx.FeedForwardAttention(), task_by_name('add', length=20, size=100).split('test')[:5])",
    "explore.prediction(rtx.build(task_by_name('chorales'), 'gru', d_model=8, layers=1), tune)",
    "explore.reach()",
    "explore.sampling(text, letters, 'abc', tokens=12)",
    "explore.window(torch.randn(9, 5))",
    "explore.xray(rtx.RNN(4, 2), torch.randn(1, 8, 4))",
]
# slow enough that a fast machine, too, has to pause them
LIVE = ["explore.toy(400, learning_rate=0.0003)", "explore.race(seconds=60.0)", "explore.dial(local=0.25)"]


def page_of(cells: list[str], folder: Path) -> Path:
    """A notebook of these cells."""
    page = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    page.cells = [nbformat.v4.new_code_cell(one) for one in (SETUP, *cells)]
    nbformat.write(page, folder / "explorers.ipynb")
    return folder / "explorers.ipynb"


def changes(image: Locator, move: Callable[[], None]) -> None:
    """The picture is another one after a move."""
    before = image.get_attribute("src")
    assert before
    move()
    expect(image).not_to_have_attribute("src", before, timeout=60_000)


def test_each_explorer_on_a_page_of_its_own_is_moved(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    notebook = open_notebook(page_of(EXPLORERS, tmp_path))
    notebook.run_all()
    assert notebook.errors() == []
    moved = 0
    for slider, image in notebook.explorers():
        changes(image, lambda slider=slider: notebook.press(slider))  # type: ignore[misc]
        changes(image, lambda slider=slider: notebook.drag(slider))  # type: ignore[misc]
        moved += 1
    assert moved == len(EXPLORERS)
    assert notebook.hosts == {LOOPBACK}


def test_what_trains_live_is_begun_and_paused_and_moved(
    open_notebook: Callable[[Path], Notebook], tmp_path: Path
) -> None:
    notebook = open_notebook(page_of(LIVE, tmp_path))
    notebook.run_all()
    assert notebook.errors() == []
    moved = 0
    for slider, image in notebook.explorers():
        cell = image.locator("xpath=ancestor::*[contains(@class, 'jp-Cell')][1]")
        train, status = cell.get_by_role("button", name="train"), cell.locator("[role=status]").first
        changes(image, lambda train=train: train.click())  # type: ignore[misc]
        expect(status).to_have_text("running")
        train.press("Space")
        expect(status).to_have_text("paused", timeout=60_000)
        changes(image, lambda slider=slider: notebook.drag(slider))  # type: ignore[misc]
        moved += 1
    assert moved == len(LIVE)
    assert notebook.hosts == {LOOPBACK}


def test_errata_are_guessed_then_shown(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    notebook = open_notebook(page_of(["explore.errata()"], tmp_path))
    notebook.run_all()
    assert notebook.errors() == []
    shown = notebook.page.locator(".jp-OutputArea-output .jupyter-widgets").first
    image = shown.locator("img.widget-image")
    expect(image).to_be_visible(timeout=30_000)
    changes(image, lambda: shown.get_by_role("checkbox").press("Space"))
    changes(image, lambda: shown.get_by_role("combobox").select_option(index=1))  # type: ignore[func-returns-value]


def test_a_notebook_is_run_to_its_end_and_the_picture_follows_the_slider(
    open_notebook: Callable[[Path], Notebook],
) -> None:
    notebook = open_notebook(FOLDER / "14_translate_and_summarise.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    slider, image = notebook.explorer()
    for move in (notebook.press, notebook.press, notebook.drag):
        changes(image, lambda move=move: move(slider))  # type: ignore[misc]
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
    with notebook.page.expect_request("http://example.org/picture.png"):
        notebook.run_all()
    assert notebook.errors() == ["ZeroDivisionError: division by zero"]
    with pytest.raises(AssertionError, match="no cell has a slider"):
        notebook.explorer()
    assert notebook.hosts == {LOOPBACK, "example.org"}
