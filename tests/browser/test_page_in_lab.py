"""A page in JupyterLab: its controls move the kernel's state, and the kernel moves its controls."""

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
