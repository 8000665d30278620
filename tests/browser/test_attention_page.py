"""The attention explorer in a browser: sentence and colours are those of the weights, moved by mouse and keyboard."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest
import torch
from drawn import blues, colours
from playwright.sync_api import Page, expect
from torch import Tensor, nn

from rtx.lab import explore

pytestmark = pytest.mark.browser

LEFT, TOP, MAP = 46, 30, 280  # of the large map, in pixels


class Looks(nn.Module):
    """Attention with these weights, (H, T, T)."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = weights

    def introspect(self, x: Tensor) -> dict[str, Tensor]:
        return {"weights": self.weights[None]}

    def forward(self, x: Tensor) -> Tensor:
        return x


def at_the_first(heads: int, T: int) -> Tensor:
    return torch.eye(T)[0].expand(heads, T, T)


@pytest.fixture
def page(tab: Page, tmp_path: Path) -> Page:
    """Head 1 looks at the first position, head 2 at its own and a little at the second."""
    own = 0.75 * torch.eye(4)
    own[1:, 1] += 0.25
    own[0, 0] = 1
    looks = Looks(torch.cat([at_the_first(1, 4), own[None]]))
    tab.goto(explore.attention(looks, torch.zeros(1, 4, 1), [*"wxyz"]).save(tmp_path / "a.html").as_uri())
    return tab


def test_the_sentence_follows_keyboard_and_mouse(page: Page) -> None:
    sentence = page.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("Layer 1, head 1: position 4 “z” looks most at 1 “w” (100 %). ")
    page.get_by_role("slider", name="head").press("ArrowRight")
    expect(sentence).to_contain_text("head 2: position 4 “z” looks most at 4 “z” (75 %), 2 “x” (25 %). ")
    expect(sentence).to_contain_text("as if over 1.8 of the 2 positions")  # e to the entropy of 3/4 and 1/4
    page.get_by_role("slider", name="position").press("Home")
    expect(sentence).to_contain_text("position 1 “w” looks most at 1 “w” (100 %)")

    maps = page.get_by_role("application", name="map of weights")
    page.locator(".tokens").get_by_text("x").click()
    expect(sentence).to_contain_text("position 2 “x” looks most at 2 “x” (100 %)")
    expect(page.locator(".note")).to_have_text("")  # the weight before the click is no longer true
    maps.click(position={"x": LEFT + 10, "y": TOP + MAP * 5 / 8})  # the third row
    expect(sentence).to_contain_text("position 3 “y” looks most at 3 “y” (75 %)")
    maps.hover(position={"x": LEFT + MAP * 3 / 8, "y": TOP + MAP * 7 / 8})
    expect(page.get_by_text("4 “z” gives 25 % to 2 “x”")).to_be_visible()
    page.get_by_role("img", name="layer 1, head 1").click()  # a small map is a head to choose
    expect(sentence).to_contain_text("Layer 1, head 1: position 3 “y”")
    maps.hover(position={"x": LEFT + MAP * 1 / 8, "y": TOP + MAP * 7 / 8})
    expect(page.get_by_text("4 “z” gives 100 % to 1 “w”")).to_be_visible()


def test_colours_are_the_weights(page: Page) -> None:
    page.get_by_role("slider", name="head").press("End")
    for token, share in zip(page.locator(".tokens span").all(), (0, (0.25 / 0.75) ** 0.5, 0, 1), strict=True):
        colour = token.evaluate("one => getComputedStyle(one).backgroundColor")
        assert [int(part) for part in re.findall(r"\d+", colour)] == pytest.approx(blues(share), abs=2)
    maps = page.get_by_role("application", name="map of weights")
    weights = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.25, 0.75, 0], [0, 0.25, 0, 0.75]]  # of head 2
    for t, s in ((0, 0), (2, 1), (2, 2), (3, 1), (1, 3)):
        (seen,) = colours(maps, [(LEFT + MAP * (2 * s + 1) / 8, TOP + MAP * (2 * t + 1) / 8)])
        wanted = mpl.colormaps["viridis"](weights[t][s] ** 0.5)[:3] if weights[t][s] else [0] * 3
        assert seen == pytest.approx([255 * part for part in wanted], abs=5)


def test_a_layer_of_fewer_heads_shows_its_last_and_what_prints_nothing_has_a_sign(page: Page, tmp_path: Path) -> None:
    layers = nn.Sequential(Looks(at_the_first(1, 3)), Looks(at_the_first(2, 3)))
    shown = explore.attention(layers, torch.zeros(1, 3, 1), [" ", "\n", ""])
    page.goto(shown.save(tmp_path / "a.html").as_uri())
    sentence, heads = page.locator("[aria-live=polite]"), page.get_by_role("slider", name="head")
    heads.press("End")
    expect(sentence).to_contain_text("Layer 2, head 2: position 3 “·” looks most at 1 “␣” (100 %). ")
    page.get_by_label("layer", exact=True).select_option(index=0)
    expect(sentence).to_contain_text("Layer 1, head 1: position 3 “·”")
    expect(heads).to_have_attribute("max", "0")
    page.get_by_role("slider", name="position").press("ArrowLeft")
    expect(sentence).to_contain_text("position 2 “⏎”")
