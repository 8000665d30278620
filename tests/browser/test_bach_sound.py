"""The sound of the Bach room: it plays the notes at their times, from the frame that a reader chose."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab
from tones import KEEP_TONES, heard, silent

from rtx.lab import explore

pytestmark = pytest.mark.browser

# C4 for three frames, E4 in the second and, struck again after a silence, in the fourth
ROLL = np.zeros((4, 88), np.uint8)
ROLL[:3, 60 - 21] = 1
ROLL[[1, 3], 64 - 21] = 1
C4, E4 = 261.6, 329.6


def show(tab: Tab, folder: Path, roll: np.ndarray = ROLL, frame_seconds: float = 0.5) -> Locator:
    """The room with a tune that no model continues; its button that plays."""
    tab.add_init_script(KEEP_TONES)
    page = explore.bach(roll, frame_seconds=frame_seconds, begin=len(roll) + 1)
    tab.goto(page.save(folder / "bach.html").as_uri())
    return tab.get_by_role("button").first


def test_every_note_has_its_pitch_and_its_time(tab: Tab, tmp_path: Path) -> None:
    button = show(tab, tmp_path)
    button.click()
    assert heard(tab) == [(C4, 0.0, 1.5), (E4, 0.5, 0.5), (E4, 1.5, 0.5)]
    expect(button).to_have_text("■ Stop")
    button.press("Enter")
    silent(tab)
    expect(button).to_have_text("▶ Play from frame 1")


def test_the_keyboard_chooses_where_it_begins(tab: Tab, tmp_path: Path) -> None:
    button = show(tab, tmp_path, frame_seconds=8)
    picture = tab.locator("canvas")
    picture.press("End")
    expect(button).to_have_text("▶ Play from frame 4")
    picture.press("ArrowLeft")
    button.click()
    assert heard(tab) == [(C4, 0.0, 8.0), (E4, 8.0, 8.0)]
    tab.evaluate("document.querySelector('canvas').remove()")  # what is taken off the page falls silent
    silent(tab)


def test_it_stops_at_the_end_and_plays_again(tab: Tab, tmp_path: Path) -> None:
    button = show(tab, tmp_path, frame_seconds=0.05)
    for context in range(2):
        button.click()
        silent(tab, context)
        expect(button).to_have_text("▶ Play from frame 1")


def test_silence_is_shown_and_played(tab: Tab, tmp_path: Path) -> None:
    button = show(tab, tmp_path, np.zeros((4, 88), np.uint8), frame_seconds=0.05)
    button.click()
    silent(tab)
    expect(button).to_have_text("▶ Play from frame 1")
    assert tab.evaluate("made.tones") == []
