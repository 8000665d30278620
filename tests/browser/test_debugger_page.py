"""The window debugger in a browser computes what LocalRNN does, by each cell, with pads read or left out."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore
from rtx.nn import LocalRNN

pytestmark = pytest.mark.browser

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
LEFT, STRIP, ROW = 92, 70, 26  # of the picture in debugger.js


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_windows_last_state_is_the_modules(tab: Tab, tmp_path: Path, cell: str) -> None:
    torch.manual_seed(0)
    model = LocalRNN(5, 3, cell)
    with torch.no_grad():
        whole, alone = model(X[None])[0], model(X[None, :1])[0]
        one = LocalRNN(5, 1, cell)
        one.load_state_dict(model.state_dict())
        skipped = one(X[None, :1])[0, 0]  # the first position without its pads
    tab.goto(explore.debugger(X, model).save(tmp_path / "page.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")

    def shown() -> float:
        return float(re.findall(r"norm ([\d.]+)\.$", sentence.inner_text())[0])

    assert shown() == pytest.approx(alone[0].norm().item(), abs=2e-3)
    expect(sentence).to_contain_text("Step 1 of 3: a pad is read")
    tab.get_by_label("pads go through the cell").press("Space")
    expect(sentence).to_contain_text("a pad is left out: the state stays. The state moves by 0.000.")
    assert shown() == pytest.approx(skipped.norm().item(), abs=2e-3)
    tab.get_by_role("slider", name="position t").press("End")
    tab.get_by_role("slider", name="step in the window").press("End")
    expect(sentence).to_contain_text("Step 3 of 3: x_7 is read")
    assert shown() == pytest.approx(whole[-1].norm().item(), abs=2e-3)


def test_gates_are_those_of_the_equations_under_their_names(tab: Tab, tmp_path: Path) -> None:
    torch.manual_seed(0)
    gru, lstm = LocalRNN(5, 2, "gru"), LocalRNN(5, 2, "lstm")
    for model, names, kinds in (
        (gru, ["reset r", "update z"], [torch.sigmoid] * 2),
        (lstm, ["input i", "forget f", "candidate g", "output o"], [torch.sigmoid] * 2 + [torch.tanh, torch.sigmoid]),
    ):
        with torch.no_grad():
            before, after = (model.introspect(X[None])["states"][0, 2, step] for step in (0, 1))  # of the window 2, 3
            sums = model.weight_ih_l0 @ X[2] + model.bias_ih_l0 + model.weight_hh_l0 @ before + model.bias_hh_l0
        gates = {name: kind(part) for name, kind, part in zip(names, kinds, sums.split(5), strict=False)}
        tab.goto(explore.debugger(X, model).save(tmp_path / "page.html").as_uri())
        sentence, canvas = tab.locator("[aria-live=polite]"), tab.get_by_role("img", name="one step of the window")
        for _ in range(2):
            tab.get_by_role("slider", name="position t").press("ArrowRight")
        tab.get_by_role("slider", name="step in the window").press("End")
        expect(sentence).to_contain_text(f"x_3 is read. The state moves by {(after - before).norm():.3f}.")
        width = canvas.evaluate("canvas => canvas.clientWidth")
        rows = {"input x": X[2], "state before": before, **gates} | ({"state after": after} if model is lstm else {})
        for place, (name, values) in enumerate(rows.items()):
            for unit in (1, 4):
                x = LEFT + (unit - 0.5) * (width - LEFT) / 5
                canvas.hover(position={"x": x, "y": STRIP + (place + 0.5) * ROW})
                told = str(tab.locator(".note").text_content())
                assert told.startswith(f"{name}, unit {unit}: ")
                assert float(told.split(": ")[1]) == pytest.approx(float(values[unit - 1]), abs=2e-3)
        largest = f"{X.abs().max():.1f}"
        assert f"1; in the row of the input -{largest} to {largest}" in tab.evaluate("window.written")


def test_the_colours_of_the_input_have_the_scale_that_the_legend_says(tab: Tab, tmp_path: Path) -> None:
    x = torch.tensor([[-4.0, 2.0], [0.0, 2.0]])
    tab.goto(explore.debugger(x, LocalRNN(2, 1)).save(tmp_path / "page.html").as_uri())
    expect(tab.locator("[aria-live=polite]")).to_contain_text("x_1 is read")
    canvas = tab.get_by_role("img", name="one step of the window")
    colours = """canvas => [0, 1].map(unit => [...canvas.getContext('2d')
        .getImageData(92 + (unit + 0.1) * (canvas.width - 92) / 2, 78, 1, 1).data].slice(0, 3).join())"""
    assert canvas.evaluate(colours) == ["5,80,160", "240,175,110"]  # blue at its strongest, orange half way
    tab.get_by_role("slider", name="position t").press("End")
    expect(tab.locator("[aria-live=polite]")).to_contain_text("x_2 is read")
    assert canvas.evaluate(colours) == ["247,247,247", "240,175,110"]


def test_the_step_is_orange_at_a_pad_and_blue_at_a_position(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.debugger(X, LocalRNN(5, 4)).save(tmp_path / "page.html").as_uri())
    sentence, canvas = tab.locator("[aria-live=polite]"), tab.get_by_role("img", name="one step of the window")
    # the seven pads of the widest window, then seven positions: those from -1 to 2 are in the window
    strip = """canvas => [-1, 0, 1, 2].map(s => [...canvas.getContext('2d')
        .getImageData(92 + (s + 6.1) * (canvas.width - 92) / 14, 26, 1, 1).data].join())"""
    nothing, orange, blue = "0,0,0,0", "222,143,5,255", "1,115,178,255"
    expect(sentence).to_contain_text("Step 1 of 4: a pad is read")
    assert canvas.evaluate(strip) == [orange, nothing, nothing, nothing]
    assert "pad #000000 1" in tab.evaluate("window.styles")  # in black on orange
    tab.get_by_role("slider", name="step in the window").press("End")
    expect(sentence).to_contain_text("Step 4 of 4: x_2 is read")
    assert canvas.evaluate(strip) == [nothing, nothing, nothing, blue]
    assert "2 #ffffff 1" in tab.evaluate("window.styles")
    tab.get_by_role("slider", name="window M").press("Home")  # the step stays in the window
    expect(sentence).to_contain_text("Step 1 of 1: x_2 is read")


def test_the_number_under_the_mouse_follows_the_keyboard(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.debugger(X).save(tmp_path / "page.html").as_uri())
    position, told = tab.get_by_role("slider", name="position t"), tab.locator(".note")
    tab.get_by_role("slider", name="step in the window").press("End")
    for key, t in (("Home", 1), ("ArrowRight", 2), ("End", 7)):
        position.press(key)
        if t == 1:
            tab.get_by_role("img", name="one step of the window").hover(position={"x": 120, "y": 80})
        expect(told).to_contain_text("input x, unit 1: ")
        assert float(told.inner_text().split(": ")[1]) == pytest.approx(X[t - 1, 0].item(), abs=1e-3)
    tab.mouse.move(1, 1)
    expect(told).to_be_empty()
