"""Explorers in JupyterLab for whoever uses the keyboard, hears the page, or has a narrow one."""

from collections.abc import Callable, Iterator

import pytest
from notebook_page import Notebook, written
from playwright.sync_api import Browser, Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = [
    "import numpy as np, torch, rtx\nfrom rtx.lab import explore\nfrom rtx.tasks import task_by_name\n"
    "tune = np.zeros((9, 88)); tune[::2, 40] = 1\nmodel = rtx.build('digits', 'gru', d_model=8, layers=1)",
    "explore.reach()",
    "explore.toy(200, learning_rate=0.0003)",  # slow enough that it has to be paused
    "explore.digits(model, task_by_name('digits').split('test')[:4])",
    "explore.race()",
    "explore.training()",
    "explore.listening({'a': tune})",
    "explore.Player(tune)",
]
REACH, TOY, DIGITS, RACE, TRAINING, LISTENING, PLAYER = range(1, 8)
COUNT = "() => window.jupyterapp.shell.currentWidget.content.model.cells.length"


@pytest.fixture(scope="module")
def shown(lab, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Locator]]:  # type: ignore[no-untyped-def]
    """A function that scrolls to the output of a cell."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, lab.add(written(CELLS, tmp_path_factory.mktemp("access"))))
    notebook.run_all()
    assert notebook.errors() == []
    yield notebook.output
    page.close()


def test_a_choice_is_moved_by_its_arrows(shown: Callable[[int], Locator]) -> None:
    output = shown(REACH)
    expect(output.get_by_role("slider", name="layers L", exact=True)).to_be_visible()
    choice = output.get_by_role("combobox")
    choice.focus()
    before, picture = choice.input_value(), output.locator("img").get_attribute("src")
    choice.press("ArrowUp")  # it is the last
    expect(choice).not_to_have_value(before)
    expect(choice).to_be_focused()
    expect(output.locator("img")).not_to_have_attribute("src", str(picture), timeout=30_000)


def test_letters_are_no_commands(shown: Callable[[int], Locator]) -> None:
    for cell in (REACH, TRAINING, LISTENING, PLAYER):
        output = shown(cell)
        control = output.locator("[role=slider], button").first
        before = output.page.evaluate(COUNT)
        control.focus()
        for key in ("b", "a", "x"):
            control.press(key)
        output.page.wait_for_timeout(300)
        assert output.page.evaluate(COUNT) == before
        expect(control).to_be_focused()


def test_each_control_has_a_name_and_its_value(shown: Callable[[int], Locator]) -> None:
    output = shown(TOY)
    length = output.get_by_role("slider", name="length T", exact=True)
    expect(length).to_have_attribute("aria-valuetext", "200")
    length.press("ArrowRight")
    expect(length).to_have_attribute("aria-valuetext", "400")
    expect(output.get_by_role("slider", name="learning rate", exact=True)).to_have_attribute("aria-valuetext", "0.0003")
    expect(output.get_by_role("img", name="Not trained yet: press “train”.")).to_be_visible()
    expect(output.locator("[aria-live=polite]").filter(has_text="Not trained yet")).to_have_count(1)
    train = output.get_by_role("button", name="train", exact=True)
    expect(train).to_have_attribute("aria-pressed", "false")
    train.press("Space")
    expect(train).to_have_attribute("aria-pressed", "true")
    expect(output.get_by_role("img", name="After ")).to_be_visible(timeout=60_000)
    train.press("Space")
    expect(train).to_have_attribute("aria-pressed", "false")
    output = shown(REACH)
    expect(output.get_by_role("slider", name="layers L", exact=True)).to_be_visible()
    assert output.get_by_role("slider").evaluate_all("all => all.every(one => one.ariaLabel)")
    expect(output.get_by_role("textbox", name="layers L, typed")).to_be_visible()


def test_a_picture_has_room_and_controls_keep_their_width(shown: Callable[[int], Locator]) -> None:
    for cell in (TOY, DIGITS, RACE, TRAINING):
        output = shown(cell)
        page = output.page
        expect(output.locator("img")).to_be_visible()
        area = output.locator(".jp-OutputArea-output").first
        assert area.evaluate("area => area.scrollWidth - area.clientWidth") <= 0, cell
    tops = {
        slider.locator("xpath=ancestor::*[contains(@class, 'widget-inline-hbox')]").evaluate("one => one.offsetTop")
        for slider in shown(TOY).get_by_role("slider").all()
    }
    assert len(tops) == 1  # a row
    page.set_viewport_size({"width": 700, "height": 1000})
    for cell in (TOY, DIGITS):
        tracks = shown(cell).locator(".noUi-target").evaluate_all("all => all.map(one => one.offsetWidth)")
        assert min(tracks) > 60, tracks
    page.set_viewport_size({"width": 1280, "height": 1000})
