"""The Bach room in a browser: notes are changed, the model goes on, and the costs are torch's."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect
from tones import KEEP_TONES, silent
from torch import nn

import rtx
from rtx.lab import explore
from rtx.lab.explore.bach import frame_costs
from rtx.tasks import SequenceModel

pytestmark = pytest.mark.browser

T, ALONE = 12, {"begin": 13}
ROLL = np.zeros((T, 88), np.uint8)
for voice, key in enumerate((20, 30, 36, 43)):
    ROLL[np.arange(T), key + np.arange(T) // (voice + 2) % 4] = 1
SENTENCE = "[aria-live=polite]"


def small_model() -> SequenceModel:
    torch.manual_seed(0)
    model = rtx.build("chorales", "r-transformer", d_model=8, layers=2, heads=2, window=3, norm="pre").eval()
    nn.init.constant_(model.head.bias, -3.0)  # few notes in a frame, as in music
    return model


def show(tab: Tab, folder: Path, roll: np.ndarray = ROLL, **state: object) -> None:
    page = explore.bach(roll, small_model(), frame_seconds=8)
    page.set(**state)
    tab.add_init_script(KEEP_TONES)
    tab.goto(page.save(folder / "bach.html").as_uri())
    expect(tab.locator(SENTENCE)).not_to_be_empty()


def costs(tab: Tab) -> list[float]:
    """The mean costs in the sentence."""
    return [float(number) for number in re.findall(r"\d+\.\d\d", str(tab.locator(SENTENCE).text_content()))]


def torchs(roll: np.ndarray, *off: int) -> float:
    """The same in torch, with some sublayers off."""
    model = small_model()
    for block in model.backbone.blocks:
        for sublayer in off:
            block[sublayer] = nn.Identity()
    return round(float(np.mean(frame_costs(model, roll))), 2)


def place(tab: Tab, frame: int, note: int) -> dict[str, float]:
    """Where a cell is; the highest note shown is six keys above the highest that sounds."""
    width = tab.locator("canvas").evaluate("canvas => canvas.clientWidth")
    high = int(np.flatnonzero(ROLL.any(0))[-1]) + 6
    return {"x": 34 + (width - 42) * (frame - 0.5) / T, "y": 50 + 6 * (high - (note - 21) + 0.5)}


def test_costs_are_those_of_torch_also_with_layers_off(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, **ALONE)
    assert costs(tab) == [torchs(ROLL)]
    tab.get_by_label("LocalRNN").press("Space")
    assert costs(tab) == [torchs(ROLL, 0), torchs(ROLL)]
    tab.get_by_label("attention").click()
    assert costs(tab) == [torchs(ROLL, 0, 1), torchs(ROLL)]


def test_many_frames_are_read_in_several_pictures(tab: Tab, tmp_path: Path) -> None:
    changed = np.tile(ROLL, (3, 1))
    show(tab, tmp_path, changed, begin=3 * T + 1)
    tab.get_by_label("LocalRNN").click()
    tab.evaluate("window.drawn = 0; addEventListener('rtx-drawn', () => drawn++)")
    tab.locator("canvas").press("Home")
    tab.locator("canvas").press("Space")
    changed[0, 60 - 21] = 1
    for off in ([0], []):
        expect(tab.locator(SENTENCE)).to_contain_text(f"{torchs(changed, *off):.2f}")
    assert tab.evaluate("drawn") >= 3 * T // 8


def test_a_click_and_the_keyboard_change_a_note_and_the_link_keeps_it(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, **ALONE)
    picture = tab.locator("canvas")
    changed = ROLL.copy()
    changed[5, 60 - 21] = 1
    picture.click(position=place(tab, 6, 60))
    assert costs(tab) == [torchs(changed)] and tab.evaluate("made.tones.length") == 1
    expect(tab).to_have_url(re.compile("edits"))
    tab.reload()
    assert costs(tab) == [torchs(changed)]

    picture.press("ArrowRight")
    picture.press("ArrowDown")
    picture.press("Space")
    changed[6, 59 - 21] = 1
    assert costs(tab) == [torchs(changed)]
    picture.press("Space")
    changed[6, 59 - 21] = 0
    assert costs(tab) == [torchs(changed)]
    picture.click(position=place(tab, 6, 60))
    assert costs(tab) == [torchs(ROLL)]
    expect(tab).not_to_have_url(re.compile("edits"))


def test_the_model_goes_on_from_the_border_and_repeats_its_draws(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, **ALONE)
    picture, before = tab.locator("canvas"), last(tab)
    tab.mouse.move(*corner(tab, 12.5))
    tab.mouse.down()
    tab.mouse.move(*corner(tab, 6.4))
    tab.mouse.up()
    expect(tab.locator(SENTENCE)).to_contain_text("Frames 1 to 6 are")
    drawn = last(tab)
    assert drawn != before
    tab.get_by_role("button", name="Draw again").click()
    assert last(tab) != drawn
    tab.get_by_role("button", name="Reset").click()
    picture.press("Home")
    tab.get_by_role("button", name="Continue from frame 2").click()
    expect(tab.locator(SENTENCE)).to_contain_text("Frame 1 is")
    for _ in range(6):
        picture.press("ArrowRight")
    tab.get_by_role("button", name="Continue from frame 7").press("Enter")
    assert last(tab) == drawn


def last(tab: Tab) -> str:
    """What is said of the last frame."""
    tab.locator("canvas").press("End")
    return str(tab.locator(".note").text_content())


def test_the_sentence_compares_costs_of_the_authors_frames_only(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, begin=7)
    assert costs(tab) == [torchs(ROLL[:6])]
    tab.get_by_label("LocalRNN").click()
    assert costs(tab) == [torchs(ROLL[:6], 0), torchs(ROLL[:6])]
    tab.locator("canvas").press("Home")
    tab.get_by_role("button", name="Continue from frame 2").click()
    assert costs(tab) == []  # frame 1 was not predicted


def corner(tab: Tab, frame: float, down: int = 12) -> tuple[float, float]:
    """Where the border before a frame is held, so far down in the picture, in the window."""
    box = tab.locator("canvas").bounding_box()
    assert box
    return box["x"] + place(tab, 1, 60)["x"] + (box["width"] - 42) * (frame - 1) / T, box["y"] + down


def test_a_drag_moves_the_border_over_its_whole_height_and_changes_no_note(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, begin=10)
    for start, end, cursor in ((9.5, 6.5, "ew-resize"), (9.5, 3.5, "pointer")):
        tab.mouse.move(*corner(tab, start, 120))
        expect(tab.locator("canvas")).to_have_css("cursor", cursor)
        tab.mouse.down()
        tab.mouse.move(*corner(tab, end, 120))
        tab.mouse.up()
        expect(tab.locator(SENTENCE)).to_contain_text("1 to 6 ")
        expect(tab.locator(SENTENCE)).not_to_contain_text("changed")
    tab.mouse.click(*corner(tab, 6.5, 120))  # a press that does not move is a click, also on the border
    expect(tab.locator(SENTENCE)).to_contain_text("changed")


def test_a_narrow_page_has_wide_frames_and_follows_the_cursor(tab: Tab, tmp_path: Path) -> None:
    tab.set_viewport_size({"width": 390, "height": 800})
    show(tab, tmp_path, np.tile(ROLL, (4, 1)))
    for key, frame in (("End", 4 * T), ("Home", 1)):
        tab.locator("canvas").press(key)
        left, seen, width = tab.locator(".pictures").evaluate(
            "box => [box.scrollLeft, box.clientWidth, box.scrollWidth]"
        )
        across = (width - 42) / (4 * T)
        assert across > 9.5 and left - across < 34 + across * (frame - 1) < left + seen


def test_temperature_leaves_the_scale_of_costs(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, begin=2)
    numbers = "[...new Set(window.written.splice(0).filter((text) => /^[0-9.]+$/.test(text)))]"
    tab.evaluate(numbers)
    scales = []
    for key in ("Home", "End"):
        tab.get_by_label("temperature").press(key)
        scales.append(tab.evaluate(numbers))
    assert scales[0] == scales[1] != []


def test_a_preset_starts_from_the_original(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, **ALONE)
    for off, on in (("LocalRNN", "attention"), ("attention", "LocalRNN")):
        tab.get_by_role("button", name=f"Without {off}").click()
        expect(tab.get_by_label(off)).not_to_be_checked()
        expect(tab.get_by_label(on)).to_be_checked()


def test_what_plays_follows_a_change(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, **ALONE)
    tab.get_by_role("button", name="Play").click()
    first = tab.evaluate("made.tones.length")
    tab.locator("canvas").click(position=place(tab, 8, 64))
    silent(tab)
    assert tab.evaluate("made.tones.length") == 2 * first + 1
    expect(tab.get_by_role("button", name="Stop")).to_be_visible()


def test_cells_and_frames_are_described(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, **ALONE)
    probability = small_model()(torch.from_numpy(ROLL).float()[None]).sigmoid()[0, 4, 39].item()
    tab.locator("canvas").hover(position=place(tab, 6, 60))
    expect(tab.locator(".note")).to_contain_text("C4: is silent.")
    expect(tab.locator(".note")).to_contain_text(f"probability {probability:.2f}")
    tab.locator("canvas").hover(position={**place(tab, 6, 60), "y": 50 + 6 * 39 + 40})
    expect(tab.locator(".note")).to_contain_text(f"{frame_costs(small_model(), ROLL)[4]:.2f} nats")
    tab.locator("canvas").press("Home")
    tab.locator("canvas").press("ArrowRight")
    expect(tab.get_by_role("status").filter(has_text="Frame 2 costs")).to_be_visible()


COPIES = """\
import { copies } from "./bach.js";

export function show(page) {
  const texts = page.data.texts.map((text) => text.split("").map((letter) => letter.charCodeAt(0)));
  return () => JSON.stringify(texts.map((text) => copies(text).map(({ at, source, length }) => [at, source, length])));
}
"""


def test_repeated_passages_are_found_with_their_source(computed: Callable[..., Any]) -> None:
    expected = {
        "abcdexxabcdy": [[7, 0, 4]],
        "abcxxabcy": [],  # three are too few
        "aaaaaaaaaa": [],  # a chord that is held
        "abcdabcdabcd": [[4, 0, 4], [8, 0, 4]],
        "abcdefxabcdyabcdef": [[7, 0, 4], [12, 0, 6]],  # the longest source
    }
    assert computed(COPIES, {"texts": [*expected]}) == [*expected.values()]
