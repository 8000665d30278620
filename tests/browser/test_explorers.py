"""A reader opens a notebook in JupyterLab, runs it and moves what it shows: the picture changes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from explorer_cells import EXPLORERS, LIVE, SETUP
from notebook_page import LOOPBACK, Notebook
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "notebooks"
Open = Callable[..., Notebook]
# What the kernel knows of a run while it trains: the updates so far, and whether it goes on.
UPDATES = """async () => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const asked = kernel.requestExecute({ code: 'print(len(lab.run.history.losses), lab.run.background.alive)' });
    let text = '';
    asked.onIOPub = message => { text += message.content.text ?? ''; };
    await asked.done;
    return text.trim().split(' ');
}"""
PAGE = """\
from ipywidgets import HTML, VBox
from rtx.lab import explore
page = explore.positions()
told = HTML()
page.observe(lambda change: setattr(told, "value", f"clip {change.new['clip']}"), "state")
page.set(encoding="Shaw's distances")
VBox([page, told])"""
DARK = "() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })"
LIGHT = """() => {
    const canvas = document.querySelector('.rtx-page canvas');
    if (!canvas) return NaN;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, i) => i % 4 == 1 && data[i + 2] > 0 && value > 240).length / (data.length / 4);
}"""


def changes(image: Locator, move: Callable[[], object]) -> None:
    """The picture is another one after a move."""
    before = image.get_attribute("src")
    assert before
    move()
    expect(image).not_to_have_attribute("src", before, timeout=60_000)


def test_each_explorer_is_moved(open_cells: Open) -> None:
    notebook = open_cells(SETUP, *EXPLORERS, "explore.errata()")
    assert notebook.errors() == []
    moved = 0
    for slider, image in notebook.explorers():
        changes(image, lambda slider=slider: notebook.press(slider))  # type: ignore[misc]
        changes(image, lambda slider=slider: notebook.drag(slider))  # type: ignore[misc]
        moved += 1
    assert moved == len(EXPLORERS)
    errata = notebook.output(len(EXPLORERS) + 1)
    image = errata.locator("img.widget-image")
    changes(image, lambda: errata.get_by_role("checkbox").press("Space"))
    changes(image, lambda: errata.get_by_role("combobox").select_option(index=1))
    assert notebook.hosts == {LOOPBACK}


def test_what_trains_live_is_begun_and_paused_and_moved(open_cells: Open) -> None:
    notebook = open_cells(SETUP, *LIVE)
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


def test_the_training_lab_starts_pauses_resumes_and_stops(open_cells: Open) -> None:
    code = 'lab = explore.training("digits", "gru", d_model=8, layers=1, epochs=5000)\nlab'
    notebook = open_cells(f"from rtx.lab import explore\n{code}")
    lab = notebook.output(0)
    status, picture = lab.locator("[role=status]"), lab.locator("img.widget-image")
    start, pause, resume, stop = (
        lab.get_by_role("button", name=name, exact=True) for name in ("Start", "Pause", "Resume", "Stop")
    )
    expect(stop).to_be_disabled()
    changes(picture, start.click)
    expect(status).to_contain_text("Running: update")
    first, _ = notebook.page.evaluate(UPDATES)  # the kernel answers while it trains
    assert int(first) > 0
    pause.press("Enter")
    expect(status).to_contain_text("Paused: update")
    standing = notebook.page.evaluate(UPDATES)
    notebook.page.wait_for_timeout(500)
    assert notebook.page.evaluate(UPDATES) == standing and standing[1] == "True"
    changes(picture, lambda: resume.press("Space"))
    stop.click()
    expect(status).to_contain_text("Stopped: update")
    ended, alive = notebook.page.evaluate(UPDATES)
    assert int(ended) > int(standing[0]) and alive == "False"
    assert notebook.errors() == [] and notebook.hosts == {LOOPBACK}


def test_a_page_shares_its_state_with_the_kernel_and_turns_dark_with_the_lab(open_cells: Open) -> None:
    notebook = open_cells(PAGE)
    assert notebook.errors() == []
    page = notebook.page
    slider, sentence = page.get_by_role("slider", name="clip k"), page.locator(".rtx-page [aria-live=polite]")
    expect(sentence).to_contain_text("With k = 4")
    slider.press("ArrowRight")
    expect(sentence).to_contain_text("With k = 5")
    expect(page.get_by_text("clip 5")).to_be_visible()  # what the kernel heard
    page.get_by_label("encoding", exact=True).select_option("sinusoids")
    page.wait_for_function(f"({LIGHT})() > 0.02")  # what is near zero is nearly white
    page.evaluate(DARK)
    expect(page.locator(".rtx-page")).to_have_css("color", "rgb(232, 232, 232)")
    page.wait_for_function(f"({LIGHT})() < 0.002")
    assert notebook.hosts == {LOOPBACK}


def test_a_notebook_is_run_to_its_end_and_the_picture_follows_the_slider(open_notebook: Open) -> None:
    notebook = open_notebook(FOLDER / "02_slide_a_window.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    slider, image = next(notebook.explorers())
    for move in (notebook.press, notebook.drag):
        changes(image, lambda move=move: move(slider))  # type: ignore[misc]
    assert notebook.hosts == {LOOPBACK}


def test_errors_and_requests_to_other_hosts_are_seen(open_cells: Open) -> None:
    """The checks above can fail."""
    notebook = open_cells("from IPython.display import HTML\nHTML('<img src=\"http://example.org/a.png\">')", "1 / 0")
    expect(notebook.page.locator("img[src*='example.org']")).to_be_attached()
    assert notebook.errors() == ["ZeroDivisionError: division by zero"]
    assert notebook.hosts == {LOOPBACK, "example.org"}
