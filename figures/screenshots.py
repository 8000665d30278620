"""Film the first explorer in a browser, for the README: an input changes, and with it the layers of three models.

    PYTHONPATH=tools python figures/screenshots.py     # needs Chromium: an installed one, or the variable CHROMIUM

Letters and lines look a little different with another Chromium or other fonts, so no test compares the bytes.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from headless import opened
from PIL import Image
from playwright.sync_api import Page

from rtx.lab import explore

FILE = Path(__file__).parent / "depends.gif"
WIDTH, COLOURS = 760, 128
INPUTS = (6, 14, 2)  # that are changed, one after the other
STEPS, WAIT, HOLD = 5, 120, 900  # keys for a change; milliseconds between two pictures, and after a change


def film(tab: Page) -> Iterator[tuple[Image.Image, int]]:
    """Yield the pictures, and how long each is shown in milliseconds."""
    canvas = tab.locator("canvas.held").first
    for wanted in INPUTS:
        canvas.press("Home")
        for _ in range(wanted - 1):
            canvas.press("ArrowRight")
        for step in range(STEPS):
            for _ in range(4):
                canvas.press("ArrowDown")
            tab.wait_for_timeout(WAIT)
            shot = Image.open(BytesIO(tab.locator(".pictures").screenshot()))
            yield shot.convert("RGB"), HOLD if step == STEPS - 1 else WAIT


def main() -> None:
    """Write the film."""
    with opened() as browser, TemporaryDirectory() as folder:
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900})
        tab.goto(explore.depends().save(Path(folder) / "page.html").as_uri())
        tab.wait_for_timeout(500)
        pictures, times = zip(*film(tab), strict=True)
    palette = pictures[STEPS - 1].quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    first, *others = (one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures)
    first.save(FILE, save_all=True, append_images=others, duration=list(times), loop=0, optimize=True)


if __name__ == "__main__":
    main()
