"""The Chromium of this machine, for what a browser must draw: pictures of explorers, the README's film, timings."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return the path in the variable CHROMIUM, else that of an installed Chromium, if there is one."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def opened(*options: str) -> Iterator[Browser]:
    """Open Chromium without a window.

    Raises:
        FileNotFoundError: if there is none.
    """
    found = chromium()
    if found is None:
        raise FileNotFoundError("found no Chromium: install it, or give its path in the variable CHROMIUM")
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # as root it refuses otherwise
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*options, *root])
        yield browser
        browser.close()
