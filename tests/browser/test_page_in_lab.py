"""A page in JupyterLab: its controls move the kernel's state, the kernel its controls, and it follows the theme."""

import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from notebook_page import LOOPBACK, Notebook
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOWN = """\
from ipywidgets import HTML, VBox
from rtx.lab import explore
page = explore.positions()
told = HTML()
page.observe(lambda change: setattr(told, "value", f"clip {change.new['clip']}"), "state")
page.set(encoding="Shaw's distances")
VBox([page, told])
"""


def test_state_goes_both_ways(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell(SHOWN)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), tmp_path / "paged.ipynb")
    notebook = open_notebook(tmp_path / "paged.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    page = notebook.page
    slider, sentence = page.get_by_role("slider", name="clip k"), page.locator(".rtx-page [aria-live=polite]")
    expect(sentence).to_contain_text("With k = 4", timeout=30_000)
    slider.press("ArrowRight")
    expect(sentence).to_contain_text("With k = 5")
    expect(page.get_by_text("clip 5")).to_be_visible()  # what the kernel heard
    assert notebook.hosts == {LOOPBACK}


DARK = "() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })"
LIGHT = """() => {
    const canvas = document.querySelector('.rtx-page canvas');
    if (!canvas) return NaN;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, i) => i % 4 == 1 && data[i + 2] > 0 && value > 240).length / (data.length / 4);
}"""


def test_it_turns_dark_with_the_lab(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("from rtx.lab import explore\nexplore.positions()")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), tmp_path / "paged.ipynb")
    notebook = open_notebook(tmp_path / "paged.ipynb")
    notebook.run_all()
    page = notebook.page
    shown = page.locator(".rtx-page")
    expect(shown).to_have_css("color", "rgb(34, 34, 34)", timeout=30_000)
    page.wait_for_function(f"({LIGHT})() > 0.02")  # what is near zero is nearly white
    page.evaluate(DARK)
    expect(shown).to_have_css("color", "rgb(232, 232, 232)", timeout=30_000)
    page.wait_for_function(f"({LIGHT})() < 0.002")
    assert notebook.hosts == {LOOPBACK}
    if folder := os.environ.get("RTX_SCREENSHOTS"):  # to look at
        page.screenshot(path=Path(folder) / "dark_lab.png")
