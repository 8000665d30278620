"""The player in a browser: its button plays the roll's notes at their times, and stops them."""

import base64
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from rtx.lab.explore import Player

pytestmark = pytest.mark.browser

# C4 for three frames, E4 in the second and, struck again after a silence, in the fourth
ROLL = np.zeros((4, 88), np.uint8)
ROLL[:3, 60 - 21] = 1
ROLL[[1, 3], 64 - 21] = 1

# Real audio, watched: every context and oscillator that the script makes, and each label of the button, is kept.
SHOW = """async ([script, state]) => {
    const made = window.made = { contexts: [], tones: [], labels: [] };
    const { AudioContext, OscillatorNode } = window;
    window.AudioContext = class extends AudioContext {
        constructor() { super(); made.contexts.push(this); }
    };
    window.OscillatorNode = class extends OscillatorNode {
        constructor(context, options) {
            super(context, options);
            this.times = { frequency: options.frequency };
            made.tones.push(this.times);
        }
        start(time) { this.times.start = time; super.start(time); }
        stop(time) { this.times.stop = time; super.stop(time); }
    };
    const bytes = Uint8Array.from(atob(state.notes), c => c.charCodeAt());
    const values = { ...state, notes: new DataView(bytes.buffer) };
    const model = { get: name => values[name], on() {}, off() {} };
    const module = await import('data:text/javascript;base64,' + script);
    document.body.replaceChildren();
    window.remove = module.default.render({ model, el: document.body });
    const button = document.querySelector('button'), label = () => made.labels.push(button.ariaLabel);
    new MutationObserver(label).observe(button, { attributeFilter: ['aria-label'] });
}"""
COLOURS = """canvas => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const count = {};
    for (let i = 0; i < pixels.length; i += 4) {
        const colour = pixels.slice(i, i + 3).join();
        count[colour] = (count[colour] ?? 0) + 1;
    }
    return count;
}"""
WHITE, NOTE, CURSOR = "255,255,255", "1,115,178", "222,143,5"


def show(tab: Page, roll: np.ndarray = ROLL, frame_seconds: float = 0.5) -> Locator:
    """The player on an empty page; its button."""
    player = Player(roll, "two notes", frame_seconds)
    state: dict[str, Any] = {name: getattr(player, name) for name in ("title", "frame_seconds", "lowest")}
    state["notes"] = base64.b64encode(player.notes).decode()
    tab.evaluate(SHOW, [base64.b64encode(str(player._esm).encode()).decode(), state])
    return tab.get_by_role("button")


def test_the_roll_is_drawn_and_described(tab: Page) -> None:
    button = show(tab)
    expect(button).to_have_accessible_name("Play two notes")
    expect(tab.get_by_role("img", name="Piano roll of two notes: 4 frames, 3 notes")).to_be_visible()
    colours = tab.locator("canvas").evaluate(COLOURS)
    # five cells of 4 × 9 (E4 to C4, and two keys around) sound, less the gaps between notes
    assert 0.10 < colours[NOTE] / sum(colours.values()) < 5 / 36
    assert colours[WHITE] > colours[NOTE] and CURSOR not in colours


def test_the_keyboard_plays_and_stops(tab: Page) -> None:
    button = show(tab, frame_seconds=60)  # it would not end by itself
    tab.keyboard.press("Tab")
    expect(button).to_be_focused()
    tab.keyboard.press("Enter")
    expect(button).to_have_accessible_name("Stop two notes")
    tab.wait_for_function("made.contexts[0].state === 'running' && made.contexts[0].currentTime > 0.3")
    expect(tab.get_by_text("of 240.0 s")).not_to_have_text("0.0 of 240.0 s")
    assert tab.locator("canvas").evaluate(COLOURS)[CURSOR] > 0
    tab.keyboard.press("Space")
    expect(button).to_have_accessible_name("Play two notes")
    expect(tab.get_by_text("0.0 of 240.0 s")).to_be_visible()
    tab.wait_for_function("made.contexts[0].state === 'closed'")


def test_every_note_has_its_pitch_and_its_time_and_a_player_that_is_removed_falls_silent(tab: Page) -> None:
    show(tab).click()
    tones = tab.evaluate("made.tones")
    zero = tones[0]["start"]
    heard = [(round(t["frequency"], 1), round(t["start"] - zero, 3), round(t["stop"] - t["start"], 2)) for t in tones]
    # frequency, start and length in seconds; a tone dies away for 0.15 s
    assert heard == [(261.6, 0.0, 1.65), (329.6, 0.5, 0.65), (329.6, 1.5, 0.65)]
    tab.evaluate("window.remove()")
    tab.wait_for_function("made.contexts[0].state === 'closed'")


def test_it_stops_at_the_end_and_plays_again(tab: Page) -> None:
    button = show(tab, frame_seconds=0.05)
    for plays in (1, 2):
        button.click()
        tab.wait_for_function(f"made.labels.length === {2 * plays}")
        assert tab.evaluate("made.labels") == ["Stop two notes", "Play two notes"] * plays
    assert tab.evaluate("made.contexts.length") == 2


def test_a_silent_roll_is_shown_and_played(tab: Page) -> None:
    button = show(tab, np.zeros((4, 88), np.uint8), frame_seconds=0.05)
    button.click()
    expect(button).to_have_accessible_name("Play two notes", timeout=20_000)
    assert tab.evaluate("made.tones") == []
