"""A reader opens a notebook in JupyterLab, runs it, and moves what it shows by pointer and by keyboard.

One notebook holds all explorers, so that one kernel loads torch.
"""

from collections.abc import Callable, Iterator

import pytest
from explorer_cells import EXPLORERS, LIVE, SETUP
from notebook_page import LOOPBACK, Notebook, written
from playwright.sync_api import Browser, Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

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
LAB = 'lab = explore.training("digits", "gru", d_model=8, layers=1, epochs=5000)\nlab'
CELLS = {
    "setup": SETUP,
    **{cell.split("(")[0].removeprefix("explore."): cell for cell in (*EXPLORERS, *LIVE)},
    "errata": "explore.errata()",
    "training": LAB,
    "page": PAGE,
    "bach": "explore.bach(tune, musician)",
    "player": "explore.Player(tune.numpy())",
}
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
def notebook(lab, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:  # type: ignore[no-untyped-def]
    """A notebook with all explorers, which was run."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    opened = Notebook(page, lab.add(written(CELLS.values(), tmp_path_factory.mktemp("cells"))))
    opened.run_all()
    assert opened.errors() == []
    yield opened
    page.close()
    assert opened.hosts == {LOOPBACK}


@pytest.fixture
def shown(notebook: Notebook) -> Show:
    """A function that scrolls to the output of a cell."""
    return lambda name: notebook.output(list(CELLS).index(name))


def changes(image: Locator, move: Callable[[], object]) -> None:
    """The picture is another one after a move."""
    before = image.get_attribute("src")
    assert before
    move()
    expect(image).not_to_have_attribute("src", before, timeout=60_000)


def test_each_control_has_a_name_and_its_value(shown: Show) -> None:
    output = shown("toy")
    length = output.get_by_role("slider", name="length T", exact=True)
    for key, value in (("ArrowLeft", "200"), ("ArrowRight", "400")):
        length.press(key)
        expect(length).to_have_attribute("aria-valuetext", value)
    expect(output.get_by_role("slider", name="learning rate", exact=True)).to_have_attribute("aria-valuetext", "0.0003")
    expect(output.get_by_role("img", name="Not trained yet: press “train”.")).to_be_visible()
    expect(output.locator("[aria-live=polite]").filter(has_text="Not trained yet")).to_have_count(1)
    output = shown("reach")
    expect(output.get_by_role("slider", name="layers L", exact=True)).to_be_visible()
    assert output.get_by_role("slider").evaluate_all("all => all.every(one => one.ariaLabel)")
    expect(output.get_by_role("textbox", name="layers L, typed")).to_be_visible()


@pytest.mark.parametrize("name", [cell.split("(")[0].removeprefix("explore.") for cell in EXPLORERS])
def test_an_explorer_is_moved_by_keyboard_and_pointer(notebook: Notebook, shown: Show, name: str) -> None:
    output = shown(name)
    slider, image = output.get_by_role("slider").first, output.locator("img.widget-image").first
    changes(image, lambda: notebook.press(slider))
    changes(image, lambda: notebook.drag(slider))


def test_the_errata_are_answered_by_keyboard(shown: Show) -> None:
    errata = shown("errata")
    image = errata.locator("img.widget-image")
    changes(image, lambda: errata.get_by_role("checkbox").press("Space"))
    changes(image, lambda: errata.get_by_role("combobox").select_option(index=1))


@pytest.mark.parametrize("name", [cell.split("(")[0].removeprefix("explore.") for cell in LIVE])
def test_what_trains_is_begun_paused_and_moved(notebook: Notebook, shown: Show, name: str) -> None:
    output = shown(name)
    slider, image = output.get_by_role("slider").first, output.locator("img.widget-image").first
    train, status = output.get_by_role("button", name="train"), output.locator("[role=status]").first
    expect(train).to_have_attribute("aria-pressed", "false")
    changes(image, train.click)
    expect(status).to_have_text("running")
    expect(train).to_have_attribute("aria-pressed", "true")
    train.press("Space")
    expect(status).to_have_text("paused", timeout=60_000)
    changes(image, lambda: notebook.drag(slider))


def test_the_training_lab_starts_pauses_resumes_and_stops(notebook: Notebook, shown: Show) -> None:
    lab = shown("training")
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


def test_a_choice_is_moved_by_its_arrows(shown: Show) -> None:
    output = shown("reach")
    expect(output.get_by_role("slider", name="layers L", exact=True)).to_be_visible()
    choice = output.get_by_role("combobox")
    choice.focus()
    before, picture = choice.input_value(), output.locator("img").get_attribute("src")
    choice.press("ArrowUp")  # it is the last
    expect(choice).not_to_have_value(before)
    expect(choice).to_be_focused()
    expect(output.locator("img")).not_to_have_attribute("src", str(picture), timeout=30_000)


def test_letters_are_no_commands(shown: Show) -> None:
    for cell in ("reach", "training", "bach", "player"):
        output = shown(cell)
        control = output.locator("[role=slider], button").first
        before = output.page.evaluate(COUNT)
        control.focus()
        for key in ("b", "a", "x"):
            control.press(key)
        output.page.wait_for_timeout(300)
        assert output.page.evaluate(COUNT) == before
        expect(control).to_be_focused()


def test_a_picture_has_room_and_controls_keep_their_width(shown: Show) -> None:
    for cell in ("toy", "digits", "race", "training"):
        output = shown(cell)
        page = output.page
        expect(output.locator("img")).to_be_visible()
        area = output.locator(".jp-OutputArea-output").first
        assert area.evaluate("area => area.scrollWidth - area.clientWidth") <= 0, cell
    tops = {
        slider.locator("xpath=ancestor::*[contains(@class, 'widget-inline-hbox')]").evaluate("one => one.offsetTop")
        for slider in shown("toy").get_by_role("slider").all()
    }
    assert len(tops) == 1  # a row
    page.set_viewport_size({"width": 700, "height": 1000})
    for cell in ("toy", "digits"):
        tracks = shown(cell).locator(".noUi-target").evaluate_all("all => all.map(one => one.offsetWidth)")
        assert min(tracks) > 60, tracks
    page.set_viewport_size({"width": 1280, "height": 1000})


def test_errors_and_requests_to_other_hosts_are_seen(open_cells: Callable[..., Notebook]) -> None:
    """The checks above can fail."""
    notebook = open_cells("from IPython.display import HTML\nHTML('<img src=\"http://example.org/a.png\">')", "1 / 0")
    expect(notebook.page.locator("img[src*='example.org']")).to_be_attached()
    assert notebook.errors() == ["ZeroDivisionError: division by zero"]
    assert notebook.hosts == {LOOPBACK, "example.org"}
