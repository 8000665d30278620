"""The training lab in a browser: mouse and keyboard start, pause, resume and stop it, and the kernel stays free."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from notebook_page import LOOPBACK, Notebook
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CODE = """\
from rtx.lab import explore
lab = explore.training("digits", "gru", d_model=8, layers=1, epochs=5000)
lab"""
UPDATES = """async () => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const asked = kernel.requestExecute({ code: 'print(len(lab.run.history.losses), lab.run.background.alive)' });
    let text = '';
    asked.onIOPub = message => { text += message.content.text ?? ''; };
    await asked.done;
    return text.trim().split(' ');
}"""


def test_it_starts_pauses_resumes_and_stops(open_notebook: Callable[[Path], Notebook], tmp_path: Path) -> None:
    page = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    page.cells = [nbformat.v4.new_code_cell(CODE)]
    nbformat.write(page, tmp_path / "training_lab.ipynb")
    notebook = open_notebook(tmp_path / "training_lab.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    lab = notebook.page.locator(".jp-OutputArea-output .jupyter-widgets").first
    status, picture = lab.locator("[role=status]"), lab.locator("img.widget-image")
    start, pause, stop = (lab.get_by_role("button", name=name, exact=True) for name in ("Start", "Pause", "Stop"))
    resume = lab.get_by_role("button", name="Resume", exact=True)
    expect(status).to_contain_text("Nothing has been trained yet", timeout=30_000)
    expect(stop).to_be_disabled()

    start.click()
    expect(status).to_contain_text("Running: update", timeout=60_000)
    before = picture.get_attribute("src")
    assert before
    expect(picture).not_to_have_attribute("src", before, timeout=30_000)
    first, _ = notebook.page.evaluate(UPDATES)  # the kernel answers while it trains
    assert int(first) > 0

    pause.press("Enter")
    expect(status).to_contain_text("Paused: update", timeout=30_000)
    standing, _ = notebook.page.evaluate(UPDATES)
    notebook.page.wait_for_timeout(500)
    assert notebook.page.evaluate(UPDATES) == [standing, "True"]

    resume.press("Space")
    expect(status).to_contain_text("Running: update", timeout=30_000)
    before = picture.get_attribute("src")
    assert before
    expect(picture).not_to_have_attribute("src", before, timeout=30_000)

    stop.click()
    expect(status).to_contain_text("Stopped: update", timeout=30_000)
    ended, alive = notebook.page.evaluate(UPDATES)
    assert int(ended) > int(standing) and alive == "False"
    assert notebook.hosts == {LOOPBACK}
