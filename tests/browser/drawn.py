"""What a canvas shows: the texts that a page wrote on it, and the colours of its pixels."""

from collections.abc import Sequence

from playwright.sync_api import Locator

# window.written has each text; window.styles has the text with its colour and its strength.
KEEP_TEXTS = """window.written = [], window.styles = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    window.written.push(String(text));
    window.styles.push(`${text} ${this.fillStyle} ${this.globalAlpha}`);
    fillText.call(this, text, ...place);
};"""
PIXELS = """(canvas, places) => places.map(([x, y]) =>
    [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3))"""
WHITE, BLUE, DEEP = (255, 255, 255), (158, 202, 225), (8, 81, 156)  # the blues of 0, 1 / 2 and 1
ORANGE = [222, 143, 5]


def colours(canvas: Locator, places: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return red, green and blue at each place."""
    return list(canvas.evaluate(PIXELS, [list(place) for place in places]))


def blues(share: float) -> list[float]:
    """Return the blue of a share from 0 to 1."""
    low, high, rest = (WHITE, BLUE, 2 * share) if share < 0.5 else (BLUE, DEEP, 2 * share - 1)
    return [a + rest * (b - a) for a, b in zip(low, high, strict=True)]


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the contrast of two colours as WCAG 2.2 defines it; 4.5 or more can be read."""
    linear = [[p / 3294.6 if p <= 10.3 else ((p / 255 + 0.055) / 1.055) ** 2.4 for p in c] for c in (one, other)]
    low, high = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in linear)
    return (high + 0.05) / (low + 0.05)
