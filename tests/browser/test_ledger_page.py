"""The ledger browser in a browser: choose a table, choose a number, read what stands behind it."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from rtx.evidence.claim import judged
from rtx.evidence.ledger import read_results, write_result
from rtx.lab import explore

pytestmark = pytest.mark.browser

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def one_row(tmp_path: Path) -> Path:
    """A ledger in which of Nottingham's rows only the GRU was run, once."""
    (tmp_path / "results" / "nottingham").mkdir(parents=True)
    shutil.copy(next((RESULTS / "nottingham").glob("gru-adam-s0-*.json")), tmp_path / "results" / "nottingham")
    return tmp_path / "results"


def test_a_number_is_chosen_by_mouse_and_keyboard(tab: Tab, tmp_path: Path, one_row: Path) -> None:
    tab.goto(explore.ledger("nottingham", one_row).save(tmp_path / "ledger.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")
    expect(sentence).to_contain_text("1 of ")
    tab.get_by_role("row", name="gru").get_by_role("button").click()
    assert "Intel(R) Xeon(R) Processor @ 2.50GHz" in next((one_row / "nottingham").iterdir()).read_text()
    expect(tab.locator(".behind")).to_contain_text(
        "on Intel Xeon @ 2.50GHz, 1 thread. To run it again: rtx train nottingham gru --seed 0"
    )
    tab.get_by_role("row", name="tcn").get_by_role("button", name="not run").first.focus()
    tab.keyboard.press("Enter")
    expect(sentence).to_contain_text("it has not been run here.")
    expect(tab.locator(".behind")).to_have_text(f"{sentence.text_content()} To run it: rtx train nottingham tcn")
    expect(tab.locator("button:focus")).to_have_text("not run")
    row = tab.get_by_role("row", name="tcn").first
    drawn = row.get_by_role("button").element_handle()
    tab.set_viewport_size({"width": 390, "height": 700})  # the keyboard stays where it is
    tab.wait_for_function("drawn => !drawn.isConnected", arg=drawn)
    expect(row.get_by_role("button")).to_be_focused()
    assert tab.locator(".behind").evaluate("one => one.clientWidth") <= 390
    tab.keyboard.press("Enter")  # a second time closes what was opened
    expect(tab.locator(".behind")).to_have_count(0)
    tab.get_by_label("table").select_option(index=0)
    expect(sentence).to_contain_text("Choose a number of ours.")


def test_claims_are_filtered_and_one_that_is_opened_stays_open(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.claims(RESULTS).save(tmp_path / "claims.html").as_uri() + "#word=chorale")
    tab.locator("summary").first.click()
    tab.set_viewport_size({"width": 500, "height": 700})  # the page is drawn again
    tab.wait_for_timeout(200)
    expect(tab.locator("details[open]")).to_have_count(1)
    tab.get_by_role("button", name="on music").click()
    music = [claim for claim, _ in judged(RESULTS) if claim.what.get("recipe") in ("nottingham", "jsb", "piano")]
    expect(tab.locator("summary")).to_have_count(len(music))
    expect(tab.locator("details", has_text="NLL per frame (nats), lower is better.")).to_have_count(len(music))
    tab.get_by_role("textbox", name="word").fill("no such word")
    expect(tab.locator("[aria-live=polite]")).to_contain_text("No claim fits")
    tab.get_by_role("button", name="what failed").click()  # a preset begins with all claims
    found = [claim for claim, finding in judged(RESULTS) if finding.verdict == "fails"]
    expect(tab.locator("summary")).to_have_count(len(found))


def test_what_is_said_of_a_number_is_what_the_ledger_has(tab: Tab, tmp_path: Path, one_row: Path) -> None:
    (run,) = read_results("nottingham", one_row)
    known = {"hardware": "a machine", "command": "rtx train nottingham gru --seed 0", "parameters": 1_234_567}
    for seed, test, validation, epoch, seconds in ((0, 3.0, 2.0, 7, 100.0), (1, 4.0, 2.5, 5, 140.0)):
        made = {"seed": seed, "test": test, "validation": validation, "epoch": epoch, "seconds": seconds}
        write_result(replace(run, variant="tried", **known, **made), one_row)
    tab.goto(explore.ledger("nottingham", one_row).save(tmp_path / "ledger.html").as_uri())
    sentence = tab.locator("[aria-live=polite]")
    expect(tab.get_by_text("the lowest is best.")).to_be_visible()
    chosen = tab.get_by_label("table").locator("option:checked")
    expect(chosen).to_contain_text(": 1 of ")
    tab.get_by_role("row", name="gru").get_by_role("button", name="3.500 ± 0.707").click()  # the root of a half
    expect(sentence).to_have_text("gru, tried: the paper has 3.46, ours is 3.500 ± 0.707.")
    expect(tab.locator(".behind")).to_contain_text(
        "ours is 3.500 ± 0.707. Seeds 0, 1, mean ± sd; "
        "NLL per frame (nats); validation 2.250 ± 0.354 NLL per frame (nats), epoch 7, 5; "
        "budget full, 2 min, 1,234,567 parameters, on a machine. To run it again: rtx train nottingham gru --seed 0"
    )
    tab.get_by_role("row", name="gru").get_by_role("button", name=f"{run.test:.3f}").click()
    expect(tab.locator(".behind")).to_contain_text(re.compile(f"Seed 0; .*epoch {run.epoch}; budget full, "))


def test_each_line_of_a_table_says_how_it_differs_from_the_others(tab: Tab, tmp_path: Path) -> None:
    tab.goto(explore.ledger("nottingham", RESULTS).save(tmp_path / "ledger.html").as_uri())
    shown = tab.locator("tbody tr").evaluate_all(
        "rows => rows.map(({ cells }) => [cells[0], cells[3], cells[4]].map((one) => one.textContent).join())"
    )
    assert len(set(shown)) == len(shown) > 40
