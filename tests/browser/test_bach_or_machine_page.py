"""The game in a browser: two tunes, one at a time; the answer only after the choice; a score beside chance."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect
from scipy.stats import binom
from tones import KEEP_TONES, silent

from rtx.lab import explore

pytestmark = pytest.mark.browser


def roll(key: int) -> np.ndarray:
    tune = np.zeros((4, 88), np.uint8)
    tune[:, key] = 1
    return tune


PAIRS = [(roll(40 + i), roll(60 + i)) for i in range(4)]
SENTENCE = "[aria-live=polite]"


def show(tab: Tab, folder: Path) -> list[int]:
    """Open the game; returns where Bach is in each pair."""
    page = explore.bach_or_machine(PAIRS, frame_seconds=8)
    tab.add_init_script(KEEP_TONES)
    tab.goto(page.save(folder / "game.html").as_uri())
    return [pair["bach"] for pair in page.data["pairs"]]


def test_one_tune_sounds_at_a_time(tab: Tab, tmp_path: Path) -> None:
    (bach, *_) = show(tab, tmp_path)
    tab.get_by_role("button", name="Play A").click()
    tab.locator("canvas").click(position={"x": 200, "y": 150})  # B
    silent(tab)
    expect(tab.get_by_role("button", name="Stop")).to_have_count(1)
    tones = [round(69 + 12 * np.log2(tone["frequency"] / 440)) for tone in tab.evaluate("made.tones")]
    assert tones == [21 + 40, 21 + 60] if bach == 0 else [21 + 60, 21 + 40]
    tab.get_by_role("button", name="A is Bach").click()
    tab.get_by_role("button", name="Next pair").click()
    silent(tab, 1)


def test_the_game_is_played_by_keyboard_and_scored_beside_chance(tab: Tab, tmp_path: Path) -> None:
    where, sentence = show(tab, tmp_path), tab.locator(SENTENCE)
    right = 0
    for i, bach in enumerate(where):
        expect(sentence).to_contain_text(f"Pair {i + 1} of 4")
        said = 0 if i == 1 else bach
        right += said == bach
        tab.get_by_role("button", name=f"{'AB'[said]} is Bach").press("Enter")
        expect(sentence).to_contain_text(f"{'Right' if said == bach else 'Wrong'}: {'AB'[bach]} is by Bach.")
        expect(sentence).to_contain_text(f"{right} of {i + 1} right")
        assert ("%" in str(sentence.text_content())) == (i == 3)  # what chance gives is said at the end
        if i == 3:
            expect(sentence).to_contain_text(f"{100 * binom.sf(right - 1, 4, 0.5) + 1e-6:.0f} %")
        tab.keyboard.press("Enter")  # the focus is on the next pair
        expect(tab.get_by_role("button", name="Play A")).to_be_focused()
    expect(sentence).to_contain_text("Pair 1 of 4")


def test_the_page_shows_no_difference_before_the_choice(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path)
    tab.get_by_label("show the notes").check()
    styles = {style.split(" ", 1)[0]: style for style in tab.evaluate("window.styles")}
    assert styles["A"].split(" ")[1] == styles["B"].split(" ")[1]
    assert not {"by", "Bach", "model"} & set(tab.locator("canvas").get_attribute("aria-label").split())
