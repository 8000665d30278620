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
    assert sorted(page.data["tables"]) == sorted(recipe_names())
    assert page.data["names"] == [*Row._fields, "command"]
    for name, table in page.data["tables"].items():
        assert [Row(*line[:-1]) for line in table["rows"]] == rows(load_recipe(name), RESULTS)


def test_a_run_brings_its_command(page):
    table, translated = page.data["tables"]["nottingham"], page.data["tables"]["multi30k"]
    commands = {line[-1] for line in table["rows"] if line[0] == "gru"}
    assert "rtx train nottingham gru --seed 0" in commands
    assert {command.split()[3] for command in commands} == {"gru"}
    assert (table["metric"].split()[0], table["best"]) == ("NLL", "lowest")
    assert (translated["metric"], translated["best"]) == ("BLEU", "highest")
    assert translated["validated"].split()[0] == "perplexity"


def test_an_empty_ledger_is_shown_and_a_damaged_one_named(tmp_path):
    page = explore.ledger("mnist", tmp_path)
    lines = page.data["tables"]["mnist"]["rows"]
    assert {line[page.data["names"].index("ours")] for line in lines} == {"not run"}
    assert lines[0][-1] == "rtx train mnist r-transformer"
    shutil.copytree(RESULTS / "nottingham", tmp_path / "nottingham")
    (path, *_) = sorted((tmp_path / "nottingham").iterdir())
    path.write_text(json.dumps({"recipe": "nottingham"}))
    with pytest.raises(ValueError, match=re.escape(path.name)):
        explore.ledger("mnist", tmp_path)
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        explore.ledger("minst", tmp_path)
