"""The attention explorer in a browser: sentence and colours are those of the weights, moved by mouse and keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from torch import Tensor, nn

from rtx.lab import explore

pytestmark = pytest.mark.browser


class Looks(nn.Module):
    """Head 1 looks at the first position, head 2 at its own and a little at the second."""

    def inside(self, x: Tensor) -> dict[str, Tensor]:
        first, own = torch.zeros(4, 4), 0.75 * torch.eye(4)
        first[:, 0] = 1
        own[1:, 1] += 0.25
        own[0, 0] = 1
        return {"weights": torch.stack([first, own])[None]}

    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 900, "height": 700})
    faults, requests = [], []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    file = explore.attention(Looks(), torch.zeros(1, 4, 1), [*"wxyz"]).save(tmp_path / "a.html")
    page.goto(file.as_uri())
    yield page
    assert (faults, requests) == ([], [file.as_uri()])
    page.close()


def test_the_sentence_follows_keyboard_and_mouse(page: Page) -> None:
    sentence = page.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("Layer 1, head 1: position 4 “z” looks most at 1 “w” (100 %). ")
    page.get_by_role("slider", name="head").press("ArrowRight")
    expect(sentence).to_contain_text("head 2: position 4 “z” looks most at 4 “z” (75 %), 2 “x” (25 %). ")
    expect(sentence).to_contain_text("as if over 1.8 of the 2 positions")  # e to the entropy of 3/4 and 1/4
    page.get_by_role("slider", name="position").press("Home")
    expect(sentence).to_contain_text("position 1 “w” looks most at 1 “w” (100 %)")

    tokens, maps = page.get_by_role("img", name="tokens"), page.get_by_role("img", name="maps of weights")
    tokens.click(position={"x": 24, "y": 10})  # the second
    expect(sentence).to_contain_text("position 2 “x” looks most at 2 “x” (100 %)")
    maps.click(position={"x": 30, "y": 20 + 280 * 5 / 8})  # the third row
    expect(sentence).to_contain_text("position 3 “y” looks most at 3 “y” (75 %)")
    maps.hover(position={"x": 20 + 280 * 3 / 8, "y": 20 + 280 * 7 / 8})
    expect(page.get_by_text("layer 1, head 2: 4 “z” gives 25 % to 2 “x”")).to_be_visible()


def test_tokens_are_as_dark_as_their_weights(page: Page) -> None:
    tokens = page.get_by_role("img", name="tokens")
    page.get_by_role("slider", name="head").press("End")
    expect(page.locator("[aria-live=polite]")).to_contain_text("head 2")
    corner = "canvas => [2, 19, 36].map(x => canvas.getContext('2d').getImageData(x, 2, 1, 1).data[0])"
    unseen, little, _ = tokens.evaluate(corner)  # red is less, the stronger the blue
    assert unseen == 255 and 8 < little < 255
