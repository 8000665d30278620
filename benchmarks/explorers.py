"""How long the showpieces take to answer: milliseconds of script for each move, measured in Chromium.

    .venv/bin/python -m benchmarks.explorers

presses keys in each showpiece's picture, or types, and writes the medians to `benchmarks/results/explorers.json`. A
frame of a screen lasts 16 ms. What the worker of the sentence computes is not script of the page: its time is that from
a pasted text of 60 letters to the last shade.
"""

import json
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import torch
from playwright.sync_api import Browser, Page, sync_playwright

from rtx.lab import explore
from rtx.tasks import task_by_name
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

OUT = Path(__file__).parent / "results" / "explorers.json"
MOVES = 60
LETTERS = "The value of the expression is the value of the last operand"
KEEP_TIMES = "window.times = []; addEventListener('rtx-drawn', (event) => window.times.push(event.detail));"
KEYS = ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp")


def opened(browser: Browser, page: explore.Page, folder: Path) -> Page:
    """Show an explorer in a tab of its own, which keeps how long each drawing takes."""
    tab = browser.new_page(viewport={"width": 960, "height": 900})
    tab.add_init_script(KEEP_TIMES)
    tab.goto(page.save(folder / f"{page.name}.html").as_uri())
    tab.wait_for_timeout(500)
    return tab


def by_keys(tab: Page, extra: tuple[str, ...] = ()) -> dict[str, Any]:
    """Move an explorer by the keys of its picture."""
    tab.locator("[role=application]").first.focus()
    tab.evaluate("window.times.length = 0")
    keys = (*KEYS, *extra)
    for i in range(MOVES):
        tab.keyboard.press(keys[i % len(keys)])
        tab.wait_for_timeout(20)
    return _told(tab)


def by_typing(tab: Page, text: str) -> dict[str, Any]:
    """Type a text into an explorer's line."""
    line = tab.locator("input[type=text]")
    line.fill("")
    tab.evaluate("window.times.length = 0")
    line.press_sequentially(text, delay=20)
    return _told(tab)


def shading(tab: Page) -> float:
    """Milliseconds until a pasted text of 60 letters is shaded for all models."""
    tab.locator("input[type=text]").fill("")
    tab.wait_for_timeout(1000)
    done = "() => document.querySelectorAll('.letters span[title^=changes]').length >= 180"
    begun = tab.evaluate("performance.now()")
    tab.locator("input[type=text]").fill(LETTERS)
    tab.wait_for_function(done, polling=5)
    return float(tab.evaluate("performance.now()") - begun)


def _told(tab: Page) -> dict[str, Any]:
    times = tab.evaluate("window.times")
    return {"median_ms": round(median(times), 2), "largest_ms": round(max(times), 2), "moves": len(times)}


def main() -> None:
    """Measure all, print and write it."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses to work for root
    tune = task_by_name("chorales").split("test")[0].inputs[:64]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--disable-gpu", *root])
        text = opened(browser, explore.sentence(), Path(folder))
        cases = {
            "Who depends on whom?": by_keys(opened(browser, explore.depends(), Path(folder))),
            "What does it remember of your sentence?": by_typing(text, LETTERS) | {"shaded_ms": round(shading(text))},
            "The Bach room": by_keys(opened(browser, explore.bach(tune), Path(folder)), ("Space",)),
            "Look-up": by_typing(opened(browser, explore.lookup(), Path(folder)), "a1 b7 c3 d9 b?"),
        }
    told: dict[str, Any] = {"command": "python -m benchmarks.explorers", "date": datetime.now(UTC).strftime("%Y-%m-%d")}
    told |= {"hardware": hardware(torch.device("cpu")), "versions": versions(), "commit": commit()}
    write_whole(OUT, f"{json.dumps({**told, 'cases': cases}, indent=2)}\n".encode())
    for name, case in cases.items():
        print(f"{name}: {case}")


if __name__ == "__main__":
    main()
