"""The window debugger in a browser computes what LocalRNN does, by each cell, with pads read or left out."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, expect

from rtx.lab import explore
from rtx.nn import LocalRNN

pytestmark = pytest.mark.browser

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_windows_last_state_is_the_modules(browser: Browser, tmp_path: Path, cell: str) -> None:
    torch.manual_seed(0)
    model = LocalRNN(5, 3, cell)
    with torch.no_grad():
        whole, alone = model(X[None])[0], model(X[None, :1])[0]
        one = LocalRNN(5, 1, cell)
        one.load_state_dict(model.state_dict())
        skipped = one(X[None, :1])[0, 0]  # the first position without its pads
    tab, faults = browser.new_page(), []
    tab.on("pageerror", lambda error: faults.append(str(error)))
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
    assert faults == []
    tab.close()


def test_the_step_stays_in_the_window_and_numbers_are_under_the_mouse(browser: Browser, tmp_path: Path) -> None:
    tab = browser.new_page()
    tab.goto(explore.debugger(X).save(tmp_path / "page.html").as_uri())
    tab.get_by_role("slider", name="step in the window").press("End")
    tab.get_by_role("slider", name="window M").press("Home")
    expect(tab.locator("[aria-live=polite]")).to_contain_text("Step 1 of 1: x_2 is read")
    tab.get_by_role("img", name="one step of the window").hover(position={"x": 120, "y": 80})
    expect(tab.get_by_text(f"input x, unit 1: {X[1, 0]:.3f}"[:-1])).to_be_visible()
    tab.close()
