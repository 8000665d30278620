"""A reader opens a notebook in JupyterLab, runs it, and trains beside it, by pointer and by keyboard.

It is the JupyterLab of `make lab`: on loopback, behind a token, with no asset from elsewhere.
"""

from collections.abc import Callable, Iterator
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from notebook_page import LOOPBACK, Notebook
from playwright.sync_api import Browser, Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# What the kernel knows of a run while it trains: the updates so far, and whether it goes on.
UPDATES = """async () => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const asked = kernel.requestExecute({ code: 'r = lab.runs[-1]; print(len(r.losses), r.alive)' });
    let text = '';
    asked.onIOPub = message => { text += message.content.text ?? ''; };
    await asked.done;
    return text.trim().split(' ');
}"""
PAGE = """\
import torch
from ipywidgets import HTML, VBox
from rtx.lab import explore
torch.set_num_threads(1)
page = explore.positions()
told = HTML()
page.observe(lambda change: setattr(told, "value", f"clip {change.new['clip']}"), "state")
page.set(encoding="Shaw's distances")
VBox([page, told])"""
LAB = 'lab = explore.training("digits", "gru", d_model=8, layers=1, epochs=5000)\nlab'
CELLS = {"page": PAGE, "training": LAB}
DARK = "() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })"
LIGHT = """() => {
    const canvas = document.querySelector('.rtx-page canvas');
    if (!canvas) return NaN;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, i) => i % 4 == 1 && data[i + 2] > 0 && value > 240).length / (data.length / 4);
}"""


Show = Callable[[str], Locator]
COUNT = "() => window.jupyterapp.shell.currentWidget.content.model.cells.length"


@pytest.fixture(scope="module")
def notebook(lab, browser: Browser) -> Iterator[Notebook]:  # type: ignore[no-untyped-def]
    """A notebook of these cells, which was run."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    opened = Notebook(page, lab.add(CELLS.values()))
    opened.run_all()
    assert opened.errors() == []
    yield opened
    page.close()
    assert opened.hosts == {LOOPBACK}


@pytest.fixture
def shown(notebook: Notebook) -> Show:
    """A function that scrolls to the output of a cell."""
    return lambda name: notebook.output(list(CELLS).index(name))


def test_the_training_lab_trains_pauses_resumes_and_stops(notebook: Notebook, shown: Show) -> None:
    lab = shown("training")
    status, sentence = lab.locator("[role=status].status"), lab.locator(".sentence")
    train, pause, resume, stop = (
        lab.get_by_role("button", name=name, exact=True) for name in ("Train", "Pause", "Resume", "Stop")
    )
    expect(stop).to_be_disabled()
    lab.get_by_label("epochs").fill("0")
    train.click()
    expect(status).to_contain_text("epochs: ")
    lab.get_by_label("epochs").fill("5000")
    lab.get_by_label("learning_rate").fill("0.02")
    train.click()
    expect(status).to_contain_text("Running: update")
    first, _ = notebook.page.evaluate(UPDATES)  # the kernel answers while it trains
    assert int(first) > 0
    pause.press("Enter")
    expect(status).to_contain_text("Paused: update")
    standing = notebook.page.evaluate(UPDATES)
    notebook.page.wait_for_timeout(500)
    assert notebook.page.evaluate(UPDATES) == standing and standing[1] == "True"

    expect(sentence).to_contain_text(f"After {standing[0]} updates")
    lab.get_by_role("slider", name="update").press("Home")
    expect(sentence).to_contain_text("After 0 updates")
    lab.locator("canvas").click(position={"x": 240, "y": 100})  # in the middle of the losses
    expect(sentence).not_to_contain_text("After 0 updates")

    resume.press("Space")
    expect(status).to_contain_text("Running: update")
    stop.click()
    expect(status).to_contain_text("Stopped: update")
    ended, alive = notebook.page.evaluate(UPDATES)
    assert int(ended) > int(standing[0]) and alive == "False"
    expect(lab.get_by_role("cell", name="learning_rate 0.02")).to_be_visible()


def test_a_page_shares_its_state_with_the_kernel_and_turns_dark_with_the_lab(shown: Show) -> None:
    output = shown("page")
    page, piece = output.page, output.locator(".rtx-page")
    slider, sentence = output.get_by_role("slider", name="clip k"), piece.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("With k = 4")
    slider.press("ArrowRight")
    expect(sentence).to_contain_text("With k = 5")
    expect(output.get_by_text("clip 5")).to_be_visible()  # what the kernel heard
    output.get_by_label("encoding", exact=True).select_option("sinusoids")
    page.wait_for_function(f"({LIGHT})() > 0.02")  # what is near zero is nearly white
    page.evaluate(DARK)
    expect(piece).to_have_css("color", "rgb(232, 232, 232)")
    page.wait_for_function(f"({LIGHT})() < 0.002")
    page.evaluate(DARK.replace("Dark", "Light"))


def test_letters_are_no_commands(shown: Show) -> None:
    output = shown("training")
    control, before = output.get_by_role("combobox").first, output.page.evaluate(COUNT)
    control.focus()
    for key in ("b", "a", "x"):
        control.press(key)
    output.page.wait_for_timeout(300)
    assert output.page.evaluate(COUNT) == before
    expect(control).to_be_focused()


def test_it_listens_on_loopback_only_and_refuses_requests_without_the_token(lab) -> None:  # type: ignore[no-untyped-def]
    listening = {c.laddr.ip for c in lab.process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening == {LOOPBACK} and len(lab.token) >= 32
    for path in ("api/contents", "api/kernels", "api/contents?token=wrong"):
        with pytest.raises(HTTPError, match="403"):
            urlopen(lab.url + path, timeout=60)
    assert urlopen(f"{lab.url}api/kernels?token={lab.token}", timeout=60).status == 200
