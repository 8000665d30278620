"""The ledger browser shows what the ledger says, and what it does not have."""

import json
import re
import shutil
from pathlib import Path

import pytest

from rtx.evidence.tables import Row, rows
from rtx.lab import explore
from rtx.lab.explore import Page
from rtx.training.recipe import load_recipe, recipe_names

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def page() -> Page:
    return explore.ledger("nottingham", RESULTS)


def test_every_table_has_the_lines_that_the_command_prints(page):
    assert sorted(page.data) == sorted(recipe_names())
    for name, table in page.data.items():
        lines = [Row(**{field: line[field] for field in Row._fields}) for line in table["rows"]]
        assert lines == rows(load_recipe(name), RESULTS)
        assert len({line["cell"] for line in table["rows"]}) == len(lines)


def test_a_run_brings_its_command(page):
    command = {line["cell"]: line["command"] for line in page.data["nottingham"]["rows"]}
    assert command["gru 0"] == "rtx train nottingham gru --seed 0"
    assert command["rnn 0"] == "rtx train nottingham rnn --seed 0"
    table, translated = page.data["nottingham"], page.data["multi30k"]
    assert (table["metric"].split()[0], table["best"]) == ("NLL", "lowest")
    assert (translated["metric"], translated["best"]) == ("BLEU", "highest")
    assert translated["validated"].split()[0] == "perplexity"


def test_an_empty_ledger_is_shown_and_a_damaged_one_named(tmp_path):
    page = explore.ledger("mnist", tmp_path)
    assert {row["ours"] for row in page.data["mnist"]["rows"]} == {"not run"}
    assert page.data["mnist"]["rows"][0]["command"] == "rtx train mnist r-transformer"
    shutil.copytree(RESULTS / "nottingham", tmp_path / "nottingham")
    (path, *_) = sorted((tmp_path / "nottingham").iterdir())
    path.write_text(json.dumps({"recipe": "nottingham"}))
    with pytest.raises(ValueError, match=re.escape(path.name)):
        explore.ledger("mnist", tmp_path)
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        explore.ledger("minst", tmp_path)
