"""What the page of "who depends on whom" computes is what torch computes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore, receptive_field
from rtx.lab.explore.depends import models, row

pytestmark = pytest.mark.browser

SCRIPT = """\
import { layers, loaded, moved } from "./depends.js";

export function show(page) {
  const { base } = page.data, others = base.map((value, t) => (t === 5 ? value + 1e-6 : value));
  return () => JSON.stringify(loaded(page.data, page.weights).map((model) => ({
    output: layers(model, base).at(-1).map((row) => [...row]),
    moved: moved(layers(model, base), layers(model, others)).at(-1).map((size) => size / 1e-6),
  })));
}
"""


def test_outputs_and_derivatives_agree_with_torch(computed: Callable[..., Any]) -> None:
    page = explore.depends()
    found = computed(SCRIPT, page.data, page.weights)
    x = torch.tensor(row(), dtype=torch.float64)[None, :, None]
    for model, one in zip(models().values(), found, strict=True):
        model = model.double()
        output = model(x)[0]
        torch.testing.assert_close(torch.tensor(one["output"]), output.float(), rtol=1e-5, atol=1e-5)
        expected = receptive_field(model, x)[:, 5]
        torch.testing.assert_close(torch.tensor(one["moved"]), expected.float(), rtol=1e-4, atol=1e-5)


def test_a_tap_sets_a_value_and_every_change_has_a_border(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.depends().save(tmp_path / "a.html").as_uri())
    bars = tab.locator("canvas").first
    width = bars.evaluate("one => one.clientWidth")
    for y, by in ((14, "1.00"), (78, "-1.00")):  # the ends of the scale
        bars.click(position={"x": width * 5.5 / 24, "y": y})
        expect(tab).to_have_url(re.compile(f"value={by.removesuffix('.00')}(&|$)"))
    rnn, windows = (tab.locator(".line").nth(i).locator(".square.changed") for i in (0, 2))
    expect(rnn).to_have_count(19)  # from input 6 on, however small
    expect(windows).to_have_count(4)
    assert {"1", "5", "10", "15", "20", "24"} <= set(tab.evaluate("window.written"))  # the positions' numbers
    expect(tab.locator(".ends")).to_have_text(re.compile("^1\n.*\n−1$"))  # the scale


def test_a_sublayer_that_is_off_passes_on_what_it_gets(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.depends().save(tmp_path / "a.html").as_uri())
    sentence = tab.locator(".sentence")
    assert "R-Transformer: positions 6 to 24;" in str(sentence.text_content())
    tab.get_by_role("button", name="Without attention").click()
    assert "R-Transformer: positions 6 to 12, no other" in str(sentence.text_content())
    tab.get_by_role("button", name="R-Transformer: LocalRNN 2").press("Enter")
    assert "R-Transformer: positions 6 to 9, no other" in str(sentence.text_content())
    tab.evaluate("location.hash = 'chosen=99'")
    expect(sentence).to_contain_text("Input 6 is changed")
    tab.evaluate("location.hash = 'chosen=24&solved=2'")  # the last input changes no other output
    expect(sentence).to_contain_text("Input 24 is changed")
    tab.wait_for_timeout(50)
    expect(tab.get_by_text("Challenge 3 of 3")).to_be_visible()
    colours = "squares => new Set(squares.map((one) => getComputedStyle(one).backgroundColor)).size"
    tab.locator("canvas").first.press("Home")
    tab.emulate_media(forced_colors="active")
    assert tab.locator(".square").evaluate_all(colours) > 10  # colours that are data stay
    tab.emulate_media(forced_colors="none")
    tab.set_viewport_size({"width": 390, "height": 800})
    assert all(one.evaluate("one => one.scrollWidth <= one.clientWidth") for one in tab.locator(".switch").all())
