"""Pages on a telephone, or enlarged: nothing is cut off or on top of another."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect
from test_attention_page import Looks

import rtx
from rtx.lab import explore
from rtx.lab.explore import Page
from rtx.nn import LocalRNN
from rtx.nn.relative import XLAttention

pytestmark = pytest.mark.browser

X = torch.randn(1, 64, 128, generator=torch.Generator().manual_seed(0))
LONG = "Donaudampfschiffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
# Where level texts stand: the left and right end, the middle, and what they say; and the width of their canvas.
PLACES = """window.places = new Map();
const { fillText } = CanvasRenderingContext2D.prototype;
const begin = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, 'width');
Object.defineProperty(HTMLCanvasElement.prototype, 'width', { ...begin, set(value) {
    window.places.set(this, []);
    begin.set.call(this, value);
} });
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text), { a, b, c, d, e, f } = this.getTransform();
    const left = x - { left: 0, start: 0, center: width / 2, right: width }[this.textAlign];
    if (!b) window.places.get(this.canvas).push([a * left + e, a * (left + width) + e, d * y + f, String(text)]);
    fillText.call(this, text, x, y);
};"""


MAKERS: dict[str, Callable[[], Page]] = {
    "attention": lambda: explore.attention(Looks(torch.full((16, 4, 4), 1 / 4)), X[:, :4], ["a", LONG, "<b>", "d"]),
    "channels": lambda: explore.channels(text="word " * 30),
    "window": lambda: explore.window(3 * X[0, :40, :16], LocalRNN(16, 40)),
    "ledger": explore.ledger,
    "bach": lambda: explore.bach(np.eye(40, 88), rtx.build("chorales", "gru", d_model=4)),
    "bach_or_machine": lambda: explore.bach_or_machine([(np.eye(40, 88), np.eye(40, 88))]),
    "positions": lambda: explore.positions(XLAttention(128, 16), X),
}


def apart(texts: list[tuple[float, float, float, str]], width: float) -> None:
    """Level texts stand within the canvas, and none on another."""
    for left, right, _, text in texts:
        assert left >= -1 and right <= width + 1, f"{text!r} is cut off: {left:.0f} to {right:.0f} of {width}"
    for i, (left, right, y, text) in enumerate(texts):
        for other_left, other_right, other_y, other in texts[:i]:
            on = abs(y - other_y) < 8 and min(right, other_right) - max(left, other_left) > 1
            assert not on, f"{text!r} stands on {other!r} at {left:.0f}, {y:.0f}"


@pytest.fixture(scope="module", autouse=True)
def places(watched: tuple[Tab, list[str]]) -> None:
    watched[0].add_init_script(PLACES)


@pytest.mark.parametrize("name", MAKERS)
def test_texts_stand_apart_and_within_the_picture(tab: Tab, tmp_path: Path, name: str) -> None:
    address, choices = MAKERS[name]().save(tmp_path / "a.html").as_uri(), tab.get_by_role("combobox")
    for width in (390, 1200):
        tab.set_viewport_size({"width": width, "height": 800})
        tab.goto(address)
        expect(tab.locator("[aria-live=polite]")).not_to_be_empty()
        for i in range(choices.locator("option").count() if name == "positions" else 1):
            if name == "positions":
                choices.select_option(index=i)
            for key in ("Home", "End"):
                for slider in tab.get_by_role("slider").all():
                    slider.press(key)
                for canvas in tab.locator("canvas").all():
                    texts = canvas.evaluate("canvas => window.places.get(canvas)")
                    apart(texts, canvas.evaluate("canvas => canvas.width"))
        pictures = tab.locator(".pictures")
        if pictures.evaluate("box => box.scrollWidth > box.clientWidth"):
            expect(pictures).to_have_attribute("tabindex", "0")  # it scrolls by keyboard
