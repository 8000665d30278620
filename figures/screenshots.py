"""Screenshots of explorers in a browser, for the README: saved as pages, opened without a server, moved by a key.

    python figures/screenshots.py     # needs Chromium; a path other than the usual ones in the variable CHROMIUM

Letters and lines look a little different with another Chromium or other fonts, so no test compares the bytes.
"""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from playwright.sync_api import Browser, sync_playwright

from rtx.lab import explore
from rtx.lab.plots import style
from rtx.nn import LocalRNN

FOLDER = Path(__file__).parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def pages() -> dict[str, tuple[explore.Page, str, list[str]]]:
    """Name → an explorer, the slider that is moved, and the keys that move it."""
    torch.manual_seed(0)
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    return {
        "explorer_channels": (explore.channels(), "step", ["Home", *["ArrowRight"] * 7]),
        "explorer_window": (explore.window(x, LocalRNN(5, 4, "gru")), "position t", ["ArrowRight"] * 4),
    }


def shoot(browser: Browser, page: explore.Page, slider: str, keys: list[str], path: Path) -> None:
    """Open a page, move a slider, and keep what is seen."""
    with TemporaryDirectory() as folder:
        saved = page.save(Path(folder) / "page.html")
        tab = browser.new_page(viewport={"width": 800, "height": 600})
        tab.goto(saved.as_uri())
        for key in keys:
            tab.get_by_role("slider", name=slider).press(key)
        tab.wait_for_timeout(500)
        tab.locator("body").screenshot(path=path)
        tab.close()


def main() -> None:
    """Make them all again."""
    style()
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # as root it refuses otherwise
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=options)
        for name, (page, slider, keys) in pages().items():
            shoot(browser, page, slider, keys, FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
