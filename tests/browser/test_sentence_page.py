"""The page of a sentence: predictions and shades are torch's, models write on, and a text can be read in part."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore
from rtx.lab.explore.network import described
from rtx.lab.explore.sentence import LONGEST, MODELS
from rtx.lab.pretrained import card_of, pretrained, weights

pytestmark = pytest.mark.browser

TEXT = "The value of the expression is the value of the last operand"
SYMBOLS = card_of("characters-gru")["texts"][0]["symbols"]
READ = torch.tensor([SYMBOLS.index(letter) for letter in TEXT])
OTHERS = torch.where(SYMBOLS.index("e") == READ, SYMBOLS.index("a"), SYMBOLS.index("e"))
DONE = "!document.querySelector('[aria-busy=true]')"
SCRIPT = """\
import { load } from "./network.js";
import { look } from "./sentence_worker.js";

export function show(page) {
  let found;
  look(load(page.data.network, page.weights), page.data, (said) => (found = said));
  return () => JSON.stringify([[...found.next], found.changes]);
}
"""


@pytest.mark.parametrize("name", MODELS.values())
def test_predictions_and_shades_of_60_letters_agree_with_torch(computed: Callable[..., Any], name: str) -> None:
    model = pretrained(name).double()
    found = computed(SCRIPT, {"network": described(model), "symbols": READ, "others": OTHERS}, weights(name))

    changed = torch.where(torch.eye(len(READ), dtype=torch.bool), OTHERS, READ)  # one letter in each row
    with torch.no_grad():
        next_letter, *others = model(torch.cat([READ[None], changed]))[:, -1].softmax(-1)
    shades = torch.stack([(one - next_letter).abs().sum() / 2 for one in others])
    for values, expected in zip(found, (next_letter, shades), strict=True):
        torch.testing.assert_close(torch.tensor(values, dtype=torch.float64), expected, atol=1e-5, rtol=0)


def opened(tab: Tab, folder: Path, text: str, **state: object) -> None:
    page = explore.sentence(text)
    page.set(**state)
    tab.goto(page.save(folder / "a.html").as_uri())
    tab.wait_for_function(DONE)


def letters(tab: Tab) -> str:
    return str(tab.locator(".letters").first.text_content())


def test_a_model_writes_the_likeliest_letters_in_its_own_row_and_nothing_moves(tab: Tab, tmp_path: Path) -> None:
    opened(tab, tmp_path, "The value of", temperature=0, read=9)
    button = tab.get_by_role("button", name="R-Transformer: write on", exact=True)
    place = button.bounding_box()
    button.click()
    model, expected = pretrained(MODELS["R-Transformer"]), [SYMBOLS.index(letter) for letter in "The value"]
    with torch.no_grad():
        for _ in range(60):
            expected.append(int(model(torch.tensor([expected]))[0, -1].argmax()))
    lines = ["The value of", "The value of", "".join(SYMBOLS[i] for i in expected)]
    expect(tab.locator(".line")).to_have_text(lines, use_inner_text=False)
    assert button.bounding_box() == place
    button.click()
    expect(tab.locator(".line")).to_have_text(["The value of"] * 3, use_inner_text=False)
    button.click()
    tab.get_by_role("button", name="Read the whole text").click()
    expect(tab.locator(".line")).to_have_text(["The value of"] * 3, use_inner_text=False)


def test_the_keyboard_stays_on_the_letter_that_it_wrote(tab: Tab, tmp_path: Path) -> None:
    opened(tab, tmp_path, TEXT)
    tab.locator(".next button").first.focus()
    for added in (1, 2):
        tab.keyboard.press("Enter")
        tab.wait_for_function(DONE)
        assert len(letters(tab)) == len(TEXT) + added
    assert tab.evaluate("document.activeElement.parentElement.className") == "next"


def test_of_an_empty_text_only_the_likeliest_letters_are_said(tab: Tab, tmp_path: Path) -> None:
    opened(tab, tmp_path, "")
    said = str(tab.locator(".sentence").text_content())
    assert "undefined" not in said and said.count("%") == len(MODELS)


def test_a_full_text_is_said_and_no_longer_written_on(tab: Tab, tmp_path: Path) -> None:
    opened(tab, tmp_path, "a" * (LONGEST - 1))
    tab.get_by_role("button", name="GRU: write on").click()
    expect(tab.locator("output").first).to_have_text(re.compile("^.$"))
    tab.locator(".next button").first.click()
    expect(tab.locator(".sentence")).to_contain_text(str(LONGEST))
    assert len(letters(tab)) == LONGEST
    expect(tab.get_by_role("button", name="GRU: write on")).to_be_disabled()


def test_a_click_on_a_letter_reads_up_to_it_and_there_is_a_way_back(tab: Tab, tmp_path: Path) -> None:
    opened(tab, tmp_path, "The value of")
    before, whole = tab.locator(".sentence").text_content(), tab.get_by_role("button", name="Read the whole text")
    tab.locator(".letters span").nth(4).hover()
    expect(tab.locator(".note")).to_contain_text("“v”, 8 back")
    tab.locator(".letters span").nth(4).click()
    expect(tab.locator(".sentence")).to_contain_text("5 of 12")
    assert letters(tab) == "The value of"
    whole.click()
    tab.wait_for_function(DONE)
    expect(tab.locator(".sentence")).to_have_text(str(before))
    expect(whole).to_be_disabled()
