"""What the page of look-up computes is what torch computes; heads are switched off, and odd texts get a sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore, trace
from rtx.lab.pretrained import card_of, pretrained
from rtx.tasks.toy.look_up import SYMBOLS

pytestmark = pytest.mark.browser
TEXTS = ["c7d2i9a0j4b3d?", "a1b7b?", "e4b8j1c5a0h3d6g9c?e?g?"]
OFF = [[], ["0.1"], ["1.0", "1.1"]]
HEADS = card_of("lookup")["hyperparameters"]["heads"]

SCRIPT = """\
import { look } from "./lookup.js";
import { load } from "./network.js";

export function show(page) {
  const model = load(page.data.model.network, page.weights);
  return () => JSON.stringify(page.data.cases.map(({ tokens, off }) => {
    const { logits, looked } = look(model, tokens, off);
    const listed = looked.map((rows) => rows.map((heads) => heads.map((one) => [...one])));
    return { logits: logits.map((row) => [...row]), looked: listed };
  }));
}
"""


def without(off: list[str]) -> torch.nn.Module:
    """The model with some heads switched off: their columns of W^o are zero."""
    model = pretrained("lookup").double()
    for layer, head in (map(int, name.split(".")) for name in off):
        output = model.get_submodule(f"backbone.blocks.{layer}.0.sublayer.output")
        output.weight.data.unflatten(1, (HEADS, -1))[:, head] = 0
    return model


def test_logits_and_attention_agree_with_torch(computed: Callable[..., Any]) -> None:
    page = explore.lookup()
    cases = [{"tokens": [SYMBOLS.index(one) for one in text], "off": off} for text in TEXTS for off in OFF]
    said = computed(SCRIPT, {"model": page.data, "cases": cases}, page.weights)
    for case, found in zip(cases, said, strict=True):
        model, tokens = without(case["off"]), torch.tensor([case["tokens"]])
        logits = model(tokens)[0]
        torch.testing.assert_close(torch.tensor(found["logits"]), logits.float(), rtol=1e-5, atol=1e-5)
        looked = trace(model, tokens)
        for layer, rows in enumerate(found["looked"]):
            expected = looked[f"backbone.blocks.{layer}.0.sublayer.weights"][0].float()
            for t, heads in enumerate(rows):
                torch.testing.assert_close(
                    torch.tensor(heads, dtype=torch.float), expected[:, t, : t + 1], rtol=1e-5, atol=1e-5
                )


def test_the_answer_changes_when_its_heads_are_off(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.lookup("a1 b7 c3 d0 b7 b?").save(tmp_path / "a.html").as_uri())
    sentence = tab.locator(".sentence")
    expect(sentence).to_contain_text("b? is 7")
    for head in range(1, HEADS + 1):
        tab.get_by_role("button", name=f"layer 2, head {head}").press("Enter")
    expect(sentence).to_contain_text("right is 7)")
    tab.get_by_role("button", name="Reset").click()
    tab.get_by_label("pairs and questions").fill("a1 b7 c3 d0 c?")
    expect(sentence).to_contain_text("c? is 3")


def test_a_letter_with_two_digits_has_two_right_answers(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.lookup("a1 b7 c3 b5 b?").save(tmp_path / "a.html").as_uri())
    top = tab.locator("canvas").bounding_box()
    assert "✓" in tab.evaluate("window.written") and "✗" not in tab.evaluate("window.written")
    for head in range(1, HEADS + 1):
        tab.get_by_role("button", name=f"layer 2, head {head}").press("Enter")
    expect(tab.locator(".sentence")).to_contain_text("layer 2 is off")
    assert tab.locator("canvas").bounding_box() == top  # a longer headline moves nothing


ODD = {
    "": "a1 b7",
    "a1 b7": "a?",
    "a1 b7 b": "“b”",
    "a1 b7 !?": "“!?”",
    "a1 b7 z?": "“z?”",
    "a1 b7 3?": "“3?”",
    "a1 b? c3": "“c3”",
    "a1 b7 c?": "no pair has this letter",
    "a1 b7 a2 a?": "1 or 2",
    "a1 a?": "has 1",
}


def test_an_odd_text_gets_a_sentence(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.lookup().save(tmp_path / "a.html").as_uri())
    for text, said in ODD.items():
        tab.get_by_label("pairs and questions").fill(text)
        expect(tab.locator(".sentence")).to_contain_text(said)
