"""The position lab's own arithmetic, in a browser, against Python's; its controls by keyboard and mouse."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect

from rtx.lab import explore
from rtx.nn.reference import sinusoidal_positions

pytestmark = pytest.mark.browser

T, LEFT, TOP, HIGH = 32, 46, 30, 290  # of the map, in pixels
SHOWN = explore.positions()
DISTANCES, TERMS = SHOWN.data["distances"], SHOWN.data["terms"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SHOWN.save(tmp_path_factory.mktemp("page") / "a.html")


@pytest.fixture
def page(tab: Page, saved: Path) -> Page:
    tab.goto(saved.as_uri())
    return tab


def choose(page: Page, encoding: str) -> None:
    page.get_by_label("encoding", exact=True).select_option(encoding)


def value(page: Page, t: int, s: int) -> float:
    """What the page says of row t, column s, both from 0."""
    canvas = page.get_by_role("application")
    wide = canvas.evaluate("canvas => canvas.clientWidth") / 2 - LEFT - 18  # half of the picture
    canvas.hover(position={"x": LEFT + (s + 0.5) * wide / T, "y": TOP + (t + 0.5) * HIGH / T})
    said = page.locator(".note").inner_text()
    place, found = said.split(": ")
    assert re.findall(r"\d+", place) == [str(t + 1), str(s + 1)]
    return float(found)


def test_sinusoids_and_their_products(page: Page) -> None:
    table = sinusoidal_positions(T, T)
    for t, i in ((31, 0), (7, 5), (20, 30)):
        assert value(page, t, i) == pytest.approx(float(table[t][i]), abs=1e-3)
    choose(page, "products of sinusoids")
    for t, s in ((31, 3), (4, 17)):
        assert value(page, t, s) == pytest.approx(float(table[t] @ table[s]) / 16, abs=1e-3)


def test_shaws_scores_are_those_of_the_clipped_distance(page: Page) -> None:
    choose(page, "Shaw's distances")
    slider, sentence = page.get_by_role("slider", name="clip k"), page.locator("[aria-live=polite]")
    slider.press("ArrowLeft")  # from 4 to 3
    expect(sentence).to_contain_text(
        "Query 32 sees all keys up to its own. With k = 3, those that are 3 or more steps back"
    )
    for t, s, distance in ((31, 31, 0), (31, 29, 2), (31, 28, 3), (31, 0, 3), (6, 1, 3)):
        assert value(page, t, s) == pytest.approx(DISTANCES[t][distance], abs=1e-3)
    canvas = page.get_by_role("application")
    canvas.hover(position={"x": LEFT + 300, "y": TOP + 5})  # the future
    assert page.locator(".note").inner_text() == ""
    canvas.press("Home")
    right = canvas.evaluate("canvas => canvas.clientWidth") - 40  # row 1 has only one bar, at the left
    canvas.hover(position={"x": right, "y": TOP + 5})
    assert page.locator(".note").inner_text() == ""
    page.evaluate("hash => (location.hash = hash)", "encoding=Shaw's distances&clip=99")
    expect(sentence).to_contain_text("With k = 16")


def test_transformer_xls_terms_are_switched_on_and_off(page: Page) -> None:
    choose(page, "Transformer-XL")
    sentence = page.locator("[aria-live=polite]")
    expect(sentence).to_contain_text(
        "(a) content; (b) content, distance; (c) content, any query; (d) distance, any query"
    )
    for t, s in ((31, 31), (20, 3)):
        assert value(page, t, s) == pytest.approx(sum(TERMS[t][s]), abs=2e-3)
    for name in ("(b) content, distance", "(d) distance, any query"):
        page.get_by_role("checkbox", name=name).press("Space")
    expect(sentence).to_have_text(
        "Query 32. The scores are the sum of: (a) content; (c) content, any query. They do not know where a key is."
    )
    for name in ("(a) content", "(c) content, any query"):
        page.get_by_label(name).click()
    page.get_by_role("application").click(position={"x": LEFT + 100, "y": TOP + 4.5 * HIGH / T})
    expect(sentence).to_have_text("All terms are off: query 5 gives the same weight to each of its keys.")
    assert value(page, 4, 2) == 0
    assert page.locator(".note").inner_text().endswith(": 0")


def test_the_largest_share_is_that_of_the_softmax(page: Page) -> None:
    choose(page, "Transformer-XL")
    page.get_by_role("slider", name="position").press("ArrowLeft")
    row = [sum(TERMS[30][s]) for s in range(31)]
    told = page.evaluate("window.written.findLast(text => text.startsWith('softmax'))")
    assert told.startswith("softmax of row 31: largest ")
    assert float(told.split("largest ")[1]) == pytest.approx(float(torch.tensor(row).softmax(0).max()), abs=2e-3)
