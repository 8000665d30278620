"""The listening room in a browser: sound is made, a tune taken away as MIDI, and a guess judged."""

from pathlib import Path

import music21
import numpy as np
import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

import rtx
from rtx.lab import explore

pytestmark = pytest.mark.browser

# C4 for three frames; E4 in the second and again in the fourth
ROLL = np.zeros((4, 88), np.float32)
ROLL[:3, 60 - 21] = 1
ROLL[[1, 3], 64 - 21] = 1
SAME = "Math.random = () => 0.99;"  # the order of the blind test is that of the list
OTHER = "Math.random = () => 0;"  # the second stands first
TONES = """const made = window.made = [], { OscillatorNode } = window;
window.OscillatorNode = class extends OscillatorNode { start(time) { made.push(time); super.start(time); } };"""


def test_a_tune_is_heard_saved_and_guessed(tab: Tab, tmp_path: Path) -> None:
    tunes = {"one": ROLL, "two": ROLL[::-1].copy()}
    room = explore.listening(tunes, generated=["two"], frame_seconds=8)  # it plays until it is stopped
    tab.add_init_script(TONES)
    tab.add_init_script(SAME)
    tab.goto(room.save(tmp_path / "room.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")
    expect(sentence).to_have_text("one: 4 frames, real.")

    tab.get_by_role("button", name="Play").click()
    expect(tab.get_by_role("button", name="Stop")).to_be_visible()
    starts = tab.evaluate("window.made")
    assert [round(start - min(starts), 3) for start in starts] == [0.0, 8.0, 24.0]
    tab.get_by_role("button", name="Stop").click()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save MIDI").click()
    download.value.save_as(tmp_path / "one.mid")
    score = music21.converter.parse(tmp_path / "one.mid").flatten()
    heard = [
        (struck.offset, note.pitch.midi, note.quarterLength)
        for struck in score.notes
        for note in (struck.notes if struck.isChord else [struck])
    ]
    assert sorted(heard) == [(0.0, 60, 1.5), (0.5, 64, 0.5), (1.5, 64, 0.5)]
    (tempo,) = score.getElementsByClass(music21.tempo.MetronomeMark)
    assert tempo.getQuarterBPM() == pytest.approx(60 / 16)  # a quarter is two frames

    tab.get_by_label("blind test").press("Space")
    expect(sentence).to_have_text("Tune 1: real or generated? Listen, and guess.")
    assert tab.get_by_role("combobox", name="tune").locator("option").all_text_contents() == ["tune 1", "tune 2"]
    tab.get_by_role("button", name="real", exact=True).click()
    expect(sentence).to_have_text("one is real: you are right, 1 of 1 so far.")
    tab.get_by_role("combobox", name="tune").select_option(index=1)
    tab.get_by_role("button", name="real", exact=True).press("Enter")
    expect(sentence).to_have_text("two is generated: you are wrong, 1 of 2 so far.")


def test_nothing_tells_a_tune_in_the_blind_test_until_it_is_guessed(tab: Tab, tmp_path: Path) -> None:
    model = rtx.build("chorales", "rnn", d_model=4, layers=1).eval()
    room = explore.listening({"one": ROLL, "two": ROLL[::-1].copy()}, ["two"], model)
    tab.add_init_script(SAME)
    tab.goto(room.save(tmp_path / "room.html").as_uri())
    costs = tab.locator("canvas").screenshot()
    tab.get_by_label("blind test").press("Space")
    assert tab.locator("canvas").screenshot() != costs
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save MIDI").click()
    assert download.value.suggested_filename == "tune 1.mid"
    tab.get_by_role("button", name="real", exact=True).click()
    expect(tab.locator("[aria-live=polite]")).to_contain_text("one is real: you are right, 1 of 1 so far.")
    assert tab.locator("canvas").screenshot() == costs


def test_the_order_is_drawn_anew_and_guesses_are_forgotten(tab: Tab, tmp_path: Path) -> None:
    room = explore.listening({"one": ROLL, "two": ROLL[::-1].copy()}, generated=["two"])
    tab.add_init_script(OTHER)
    tab.goto(room.save(tmp_path / "room.html").as_uri())
    sentence, tunes = tab.locator("[aria-live=polite]"), tab.get_by_role("combobox", name="tune")
    again = tab.get_by_role("button", name="again")
    expect(again).to_be_hidden()
    tab.get_by_label("blind test").press("Space")
    tab.get_by_role("button", name="real", exact=True).press("Enter")
    expect(sentence).to_have_text("two is generated: you are wrong, 0 of 1 so far.")
    expect(tunes).to_be_focused()
    tab.evaluate(SAME)
    again.press("Enter")
    expect(sentence).to_have_text("Tune 1: real or generated? Listen, and guess.")
    tab.get_by_role("button", name="real", exact=True).press("Enter")
    expect(sentence).to_have_text("one is real: you are right, 1 of 1 so far.")
    tunes.select_option(index=1)
    tab.get_by_label("blind test").press("Space")
    expect(sentence).to_have_text("two: 4 frames, generated.")  # the same tune, now by name


def test_all_tunes_have_one_scale_of_costs(tab: Tab, tmp_path: Path) -> None:
    model = rtx.build("chorales", "rnn", d_model=4, layers=1).eval()
    room = explore.listening({"one": ROLL, "two": np.zeros_like(ROLL)}, model=model)
    most = max(cost for tune in room.data["tunes"] for cost in tune["nll"][1:])
    tab.goto(room.save(tmp_path / "room.html").as_uri())
    for index in (0, 1):
        tab.get_by_role("combobox", name="tune").select_option(index=index)
        assert f"{most:.1f} nats" in tab.evaluate("window.written.slice(-8)")


def test_costs_are_told_for_a_tune_and_under_the_mouse(tab: Tab, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = rtx.build("chorales", "rnn", d_model=4, layers=1).eval()
    with torch.no_grad():
        p = model(torch.tensor(ROLL[None, :-1]), torch.tensor([3]))[0].double().sigmoid()
    notes = torch.tensor(ROLL[1:], dtype=torch.bool)
    costs = [-sum(p[t].where(notes[t], 1 - p[t]).log().tolist()) for t in range(3)]  # of the frames 2 to 4
    dearest = max(range(3), key=costs.__getitem__)
    tab.goto(explore.listening({"one": ROLL}, model=model).save(tmp_path / "room.html").as_uri())
    expect(tab.locator("[aria-live=polite]")).to_have_text(
        f"one: 4 frames, real. {sum(costs) / 3:.2f} nats a frame; the dearest, frame {dearest + 2}, {max(costs):.1f}."
    )
    canvas, point = tab.locator("canvas"), tab.locator(".note")
    width = canvas.evaluate("canvas => canvas.clientWidth") - 30  # the keys' names stand on the left
    for frame, cost in enumerate(costs, 2):
        canvas.hover(position={"x": 30 + (frame - 0.5) * width / 4, "y": 100})
        expect(point).to_have_text(f"frame {frame}: {cost:.2f} nats")
    canvas.hover(position={"x": 30 + width / 8, "y": 100})
    expect(point).to_be_empty()  # the first frame is not predicted
    colours = """canvas => [0, 1, 2, 3].map(frame => [...canvas.getContext('2d')
        .getImageData(30 + (frame + 0.5) * (canvas.width - 30) / 4, 236 - 42 - 8, 1, 1).data].slice(0, 3).join())"""
    strip = canvas.evaluate(colours)
    assert strip[0] == "247,247,247" and [i for i, one in enumerate(strip) if one == "175,80,0"] == [dearest + 1]
