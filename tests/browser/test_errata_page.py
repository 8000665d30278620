"""The errata detective in a browser: names before the guess, numbers after it."""

from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.lab import explore

pytestmark = pytest.mark.browser


def test_names_are_shown_before_the_guess_and_small_numbers_have_a_bar(tab: Tab, tmp_path: Path) -> None:
    page = explore.errata()
    tab.goto(page.save(tmp_path / "a.html").as_uri())
    bars = page.data["cases"][0]["bars"]
    expect(tab.locator("td")).to_have_text([name for name, _ in bars])
    tab.get_by_role("button", name="Show the evidence").press("Enter")
    expect(tab.locator("td:nth-child(2)")).to_have_text([f"{value:g}" for _, value in bars])
    faulty, *small = tab.locator("td:nth-child(3) div").evaluate_all("bars => bars.map((one) => one.clientWidth)")
    assert all(faulty / 10 < width < faulty / 2 for width in small)
