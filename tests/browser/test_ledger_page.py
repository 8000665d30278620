"""The ledger browser in a browser: choose a table, choose a number, read what stands behind it."""

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from rtx.lab import explore

pytestmark = pytest.mark.browser

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def one_row(tmp_path: Path) -> Path:
    """A ledger in which of Nottingham's rows only the GRU was run, once."""
    (tmp_path / "results" / "nottingham").mkdir(parents=True)
    shutil.copy(next((RESULTS / "nottingham").glob("gru-adam-s0-*.json")), tmp_path / "results" / "nottingham")
    return tmp_path / "results"


def test_a_number_is_chosen_by_mouse_and_keyboard(browser: Browser, tmp_path: Path, one_row: Path) -> None:
    saved = explore.ledger("nottingham", one_row).save(tmp_path / "ledger.html")
    tab, faults, requests = browser.new_page(), [], []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(saved.as_uri())
    sentence = tab.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("rows have been run")
    tab.get_by_role("row", name="gru").get_by_role("button").click()
    hardware = json.loads(next((one_row / "nottingham").iterdir()).read_text())["hardware"]
    expect(sentence).to_contain_text(f"on {hardware}. To run it again: rtx train nottingham gru --seed 0")
    tab.get_by_role("row", name="tcn").get_by_role("button", name="not run").first.focus()
    tab.keyboard.press("Enter")
    expect(sentence).to_contain_text("it has not been run here. To run it: rtx train nottingham tcn")
    expect(tab.locator("button:focus")).to_have_text("not run")
    tab.get_by_label("table").select_option(index=0)
    expect(sentence).to_contain_text("Choose a number of ours.")
    assert (faults, requests) == ([], [saved.as_uri()])
    tab.close()
