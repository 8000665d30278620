"""The frame of the showpieces in a browser, as a file without a server: controls, canvas, sentence, themes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from drawn import contrast
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab.explore import Page

pytestmark = pytest.mark.browser

SCRIPT = """\
import { bitmap, heatMap } from "./chart.js";
import { diverging } from "./colours.js";
import { button, canvas, checkbox, numberInput, select, slider, textInput } from "./page.js";

export function show(page) {
  slider(page, "row", { max: 2 });
  select(page, "unit", { options: ["bits", ["n", "nats"]] });
  textInput(page, "word", { label: "a word" });
  checkbox(page, "loud", {});
  numberInput(page, "size", {});
  const press = button(page, "Press", () => page.set({ loud: true }));
  const values = page.data.table;
  const point = (x, y) => `at ${Math.round(x)}, ${Math.round(y)}`;
  const picture = canvas(page, { label: "a row", point });
  return ({ row, unit, word, loud }) => {
    press.disabled = loud;
    const { pen, width } = picture.begin(60);
    const map = bitmap(1, 3, (_, k) => diverging(values[3 * row + k], page.dark));
    heatMap(pen, { x: 0, y: 0, width, height: 60 }, map);
    return `${values[3 * row].toFixed(2)} ${unit} ${loud ? word.toUpperCase() : word}`;
  };
}
"""
STATE = {"row": 0, "unit": "bits", "word": "a<b", "loud": False, "size": ""}
TABLE = torch.tensor([[-1.0, 0.0, 1.0], [0.25, 0.5, 0.0], [1.0, -1.0, 0.0]])
COLOURS = """canvas => [0.17, 0.5, 0.83].map(place => [...canvas.getContext('2d')
    .getImageData(canvas.width * place, canvas.height / 2, 1, 1).data].slice(0, 3).join())"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "piece.js"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def saved(script: Path, tmp_path: Path) -> Path:
    return Page(script, {"table": TABLE.flatten()}, "move the row", **STATE).save(tmp_path / "a.html")


@pytest.mark.parametrize("typed", ["row=9", "word=b&row"])
def test_an_address_that_cannot_be_shown_gives_the_start(tab: Tab, saved: Path, typed: str) -> None:
    tab.goto(f"{saved.as_uri()}#{typed}")
    expect(tab.locator("[aria-live=polite]")).to_have_text("-1.00 bits a<b")


def test_another_address_in_an_open_page_is_followed(tab: Tab, saved: Path) -> None:
    sentence = tab.locator("[aria-live=polite]")
    tab.goto(f"{saved.as_uri()}#row=1")
    expect(sentence).to_have_text("0.25 bits a<b")
    for typed, shown in (("row=2", "1.00 bits"), ("elsewhere", "1.00 bits"), ("row=zz", "-1.00 bits")):
        tab.evaluate("hash => (location.hash = hash)", typed)
        expect(sentence).to_have_text(f"{shown} a<b")


def test_an_address_says_what_differs_from_the_page_as_it_was_saved(tab: Tab, script: Path, tmp_path: Path) -> None:
    page = Page(script, {"table": TABLE.flatten()}, "move the row", **STATE)
    page.set(row=2)
    tab.goto(page.save(tmp_path / "a.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")
    tab.get_by_role("button", name="Reset").click()
    expect(tab).to_have_url(re.compile("#row=0$"))
    tab.reload()
    expect(sentence).to_have_text("-1.00 bits a<b")
    tab.get_by_role("button", name="Press").click()
    expect(tab.locator(".rtx-page")).to_be_focused()  # a button that is disabled has no focus; Enter presses no other
    tab.get_by_label("size").press_sequentially("12")
    tab.set_viewport_size({"width": 400, "height": 600})
    tab.wait_for_timeout(100)  # it is drawn again while the reader types
    expect(tab.get_by_label("size")).to_have_value("12")


def test_controls_are_moved_by_keyboard_and_mouse(tab: Tab, saved: Path) -> None:
    tab.goto(saved.as_uri())
    sentence, canvas = tab.locator("[aria-live=polite]"), tab.get_by_role("img", name="a row")
    expect(sentence).to_have_text("-1.00 bits a<b")
    assert canvas.evaluate(COLOURS) == ["5,80,160", "247,247,247", "175,80,0"]

    tab.get_by_role("slider", name="row").press("End")
    expect(sentence).to_have_text("1.00 bits a<b")
    assert canvas.evaluate(COLOURS) == ["175,80,0", "5,80,160", "247,247,247"]
    tab.get_by_role("slider", name="row").click()  # in its middle
    tab.get_by_label("unit").select_option("nats")
    tab.get_by_label("a word").fill("quiet")
    expect(sentence).to_have_text("0.25 n quiet")
    tab.get_by_label("loud").press("Space")
    expect(sentence).to_have_text("0.25 n QUIET")
    canvas.hover(position={"x": 40, "y": 20})
    expect(tab.get_by_text("at 40, 20")).to_be_visible()


def test_it_follows_the_theme_and_the_width(tab: Tab, saved: Path) -> None:
    tab.goto(saved.as_uri())
    canvas = tab.get_by_role("img", name="a row")
    before = canvas.evaluate("canvas => canvas.width")
    tab.emulate_media(color_scheme="dark")
    expect(tab.locator(".rtx-page")).to_have_css("color", "rgb(232, 232, 232)")
    assert canvas.evaluate(COLOURS) == ["110,190,255", "38,38,38", "255,175,80"]
    tab.set_viewport_size({"width": 400, "height": 600})
    tab.wait_for_function(f"document.querySelector('canvas').width < {before}")
    assert canvas.evaluate(COLOURS) == ["110,190,255", "38,38,38", "255,175,80"]


CONTRAST = """\
import { SERIES } from "./chart.js";
import { blues, css, diverging, inkOn, viridis } from "./colours.js";
import { bachs, machines } from "./roll.js";

export function show() {
  const rgb = (colour) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
  };
  const shares = Array.from({ length: 101 }, (_, i) => i / 100);
  const colours = shares.flatMap((share) => [viridis(share), ...[false, true].flatMap((dark) =>
    [blues(share, dark), diverging(2 * share - 1, dark)])]);
  const lines = SERIES.map((colour) => `${rgb(colour)} 24,24,24`);
  const notes = [bachs, machines].flatMap((one) => [`${rgb(one(false))} 255,255,255`, `${rgb(one(true))} 24,24,24`]);
  return () => [...notes, ...colours.map((colour) => `${colour} ${rgb(inkOn(colour))}`), ...lines].join(";");
}
"""


def test_text_on_every_colour_of_a_scale_and_lines_on_dark_paper_are_read(tab: Tab, tmp_path: Path) -> None:
    script = tmp_path / "piece.js"
    script.write_text(CONTRAST)
    tab.goto(Page(script, {}, "read", a=0).save(tmp_path / "a.html").as_uri())
    pairs = str(tab.locator("[aria-live=polite]").text_content()).split(";")
    found = [contrast(*([int(part) for part in one.split(",")] for one in pair.split())) for pair in pairs]
    assert len(found) == 517 and min(found[:509]) >= 4.5  # of text
    assert min(found[509:]) >= 3  # of lines on dark paper


NUMBERS = """\
import { arrows, decimals } from "./page.js";

export function show() {
  const rows = ["PageDown", "PageUp", "ArrowDown"].map((key) => arrows(key, ["row", 20, 0, 99]).row);
  return () => JSON.stringify([...rows, decimals(-0.001, 2), decimals(-0.006, 2)]);
}
"""


def test_down_is_the_next_row_of_a_list_and_zero_has_no_sign(computed: Callable[..., Any]) -> None:
    assert computed(NUMBERS, {}, a=0) == [30, 10, 21, "0.00", "-0.01"]
