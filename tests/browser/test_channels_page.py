"""The channel explorer in a browser: the page's arithmetic is torch's."""

import re
from pathlib import Path

import pytest
import torch
from drawn import blues
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab

from rtx import MCRNN, LanguageModel
from rtx.lab import explore, trace
from rtx.nn.reference import block_start
from rtx.tasks.vocabulary import END, UNKNOWN, Vocabulary, vocabulary

pytestmark = pytest.mark.browser

WORDS = vocabulary("words and marks", [UNKNOWN, "few", "and", "far", "between", "."])


def cell(tab: Tab, step: int, channel: int) -> Locator:
    return tab.locator("tr").nth(channel).locator("td").nth(step - 1)


def channel_weights(model: LanguageModel, words: Vocabulary, text: str) -> torch.Tensor:
    """α_t^k of the first layer, (T, C), as the model itself computes it."""
    return trace(model, torch.tensor([words.encode(text)]))["backbone.layers.0.channel_weights"][0]


@pytest.mark.parametrize(
    "options",
    [
        {"cell": "lstm", "block": 4},
        {"cell": "gru", "block": 3, "layers": 2},
        {"cell": "rnn", "block": 5},
    ],
    ids=lambda options: options["cell"],
)
def test_the_page_computes_the_layers_weights(tab: Tab, tmp_path: Path, options: dict) -> None:
    torch.manual_seed(0)
    model = LanguageModel(MCRNN(6, **options), WORDS.size)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)  # so that the channels differ
    tab.goto(explore.channels(model, WORDS, "few . and").save(tmp_path / "a.html").as_uri())
    text = "few and far between, unheard of . and few ."
    tab.get_by_role("textbox", name="sentence").fill(text)
    expected = channel_weights(model, WORDS, text)
    assert expected.std(1).max() > 0.02
    sentence, steps = tab.locator("[aria-live=polite]"), tab.get_by_role("slider", name="step")
    for step, keys in ((len(expected), ["End"]), (2, ["Home", "ArrowRight"]), (3, ["ArrowRight"])):
        for key in keys:
            steps.press(key)
        expect(sentence).to_contain_text("3 in brackets: not in the vocabulary")
        told = str(sentence.text_content()).split("weights: ")[1]
        shown = [float(number) for number in re.findall(r"\d\.\d\d", told)]
        assert shown == pytest.approx(expected[step - 1].tolist(), abs=0.011)


def test_the_sentence_says_what_the_channels_join(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.channels().save(tmp_path / "a.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")
    expect(sentence).to_have_text("Before “between”, channel 1 reads 1, channel 2 reads 3, channel 3 reads 2 words.")
    tab.get_by_role("slider", name="block").press("Home")
    expect(sentence).to_have_text("Before “between”, channel 1 reads 1 word.")
    tab.get_by_role("slider", name="step").press("Home")
    expect(sentence).to_contain_text("Before “Home-grown”, channel 1 reads 0 words.")
    cell(tab, 2, 1).hover()
    expect(tab.get_by_text("step 2, channel 1: “Home-grown champions”")).to_be_visible()
    cell(tab, 2, 1).click()
    expect(sentence).to_contain_text("Before “champions”, channel 1 reads 1 word.")
    tab.evaluate("location.hash = 'step=0'")
    expect(sentence).to_contain_text("Before “Home-grown”")
    tab.get_by_role("textbox", name="sentence").fill("")
    expect(sentence).to_have_text("Type a sentence.")
    tab.get_by_role("textbox", name="sentence").fill("one two " * 20)
    expect(sentence).to_contain_text("Of 40 words only the first 24 are shown.")


def test_a_cell_has_the_number_of_eq_1_and_the_blue_of_its_weight(tab: Tab, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = LanguageModel(MCRNN(6, cell="gru", block=4), WORDS.size)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4)  # so that the channels differ
    text = "few and far between and few and far"
    tab.goto(explore.channels(model, WORDS, text).save(tmp_path / "a.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("Their weights: ")
    legend = tab.get_by_text("The bluer a cell, the larger the weight")
    expect(legend).to_be_visible()
    for k in (1, 2, 3):
        numbers = tab.locator("tr").nth(k).locator("td").all_text_contents()
        assert numbers == [str(t - block_start(t, k, 4, "equation")) for t in range(1, 9)]
    expected = channel_weights(model, WORDS, text)
    assert expected.std(1).max() > 0.05
    for t, k in ((3, 1), (5, 2), (7, 3), (6, 1)):
        share = float(expected[t - 1, k - 1])
        colour = cell(tab, t, k).evaluate("one => getComputedStyle(one).backgroundColor")
        assert [int(part) for part in re.findall(r"\d+", colour)] == pytest.approx(blues(share), abs=3)
        cell(tab, t, k).hover()
        told = str(tab.locator(".note").text_content())
        assert told.startswith(f"step {t}, channel {k}: ")
        assert float(told.split("weight ")[1]) == pytest.approx(share, abs=0.006)
    tab.get_by_role("slider", name="block").press("ArrowLeft")
    expect(sentence).to_contain_text("The model's own n is 4: its weights are shown there.")
    expect(legend).to_have_count(0)
    expect(cell(tab, 1, 1)).to_have_css("background-color", "rgb(255, 255, 255)")


@pytest.mark.parametrize(("unit", "text"), [("words", "few\nand far"), ("words and marks", "few, and\nfar  few")])
def test_a_text_of_lines_is_cut_as_python_cuts_it(tab: Tab, tmp_path: Path, unit: str, text: str) -> None:
    torch.manual_seed(0)
    symbols = vocabulary(unit, [UNKNOWN, END, "few", "and", "far"])
    model = LanguageModel(MCRNN(6, block=3), symbols.size)
    page = explore.channels(model, symbols, text)
    expected = channel_weights(model, symbols, text)
    page.set(step=len(expected))
    tab.goto(page.save(tmp_path / "a.html").as_uri())
    expect(tab.get_by_role("slider", name="step")).to_have_attribute("max", str(len(expected)))
    told = str(tab.locator("[aria-live=polite]").text_content()).split("weights: ")[1]
    shown = [float(number) for number in re.findall(r"\d\.\d\d", told)]
    assert shown == pytest.approx(expected[-1].tolist(), abs=0.011)
    expect(tab.get_by_role("textbox", name="sentence")).to_have_value(text.replace("\n", " "))


def test_words_are_over_their_columns_and_the_channels_names_stay_in_view(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.channels(text="between " * 24).save(tmp_path / "a.html").as_uri())
    tab.add_style_tag(content="th, td { vertical-align: top }")  # as on the site
    middles = """cells => cells.map((one) => {
        const range = new Range();
        range.selectNodeContents(one);
        return (range.getBoundingClientRect().left + range.getBoundingClientRect().right) / 2;
    })"""
    words, numbers = tab.locator("th:not(:first-child)"), tab.locator("tr").nth(1).locator("td")
    assert words.evaluate_all(middles) == pytest.approx(numbers.evaluate_all(middles), abs=2)
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.get_by_role("slider", name="step").press("End")
    tab.wait_for_function("document.querySelector('.pictures').scrollLeft > 100")
    expect(tab.get_by_role("rowheader", name="channel 1")).to_be_in_viewport(ratio=0.9)
