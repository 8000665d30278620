"""The ledger browser shows what the ledger says, and what it does not have."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rtx.evidence.ledger import read_results, write_result
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


def test_the_still_figure_shows_models_as_they_are_and_cut_budgets_open(tmp_path):
    like = next(iter(read_results("nottingham", RESULTS)))
    made = {"paper": (2.0, None), "adam+heads=0": (5.0, None), "adam": (3.0, "2 of 15 epochs")}
    made |= {"same-parameters": (4.0, None), "same-flops+learning_rate=0.001": (6.0, None)}  # of another width
    for variant, (test, budget) in made.items():
        change = {"model": "gru", "variant": variant, "test": test, "budget": budget}
        write_result(replace(like, **change), tmp_path, ended=variant)
    (ax,) = explore.ledger("nottingham", tmp_path).still.axes
    dots = {line.get_xdata()[0]: line.get_fillstyle() for line in ax.lines if line.get_label().startswith("ours")}
    assert dots == {2.0: "full", 3.0: "none"}


def test_an_empty_ledger_is_shown_and_a_damaged_one_named(tmp_path):
    page = explore.ledger("mnist", tmp_path)
    assert {row["ours"] for row in page.data["mnist"]["rows"]} == {"not run"}
    assert page.data["mnist"]["rows"][0]["command"] == "rtx train mnist r-transformer"
    assert "png" in str(page._repr_mimebundle_()[0].keys())
    shutil.copytree(RESULTS / "nottingham", tmp_path / "nottingham")
    (path, *_) = sorted((tmp_path / "nottingham").iterdir())
    path.write_text(json.dumps({"recipe": "nottingham"}))
    with pytest.raises(ValueError, match=re.escape(path.name)):
        explore.ledger("mnist", tmp_path)
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        explore.ledger("minst", tmp_path)
