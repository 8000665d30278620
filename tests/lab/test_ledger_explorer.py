"""The ledger browser shows what the ledger says, and what it does not have."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rtx.evidence.ledger import read_results, write_result
from rtx.evidence.tables import rows
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
        lines = [
            (row["model"], row["paper"], cell["ours"], cell["budget"], cell["hardware"])
            for row in table["rows"]
            for cell in row["cells"] or [{"ours": "not run", "budget": "", "hardware": ""}]
        ]
        assert lines == [(r.model, r.paper, r.ours, r.budget, r.hardware) for r in rows(load_recipe(name), RESULTS)]


def test_a_run_brings_its_command_and_a_missing_one_says_how_to_run_it(page):
    table = page.data["nottingham"]
    row = {one["model"]: one for one in table["rows"]}
    assert row["gru"]["cells"][0]["command"] == "rtx train nottingham gru --seed 0"
    assert row["rnn"]["command"] == "rtx train nottingham rnn"
    assert (table["metric"].split()[0], table["best"]) == ("NLL", "lowest")
    translated = page.data["multi30k"]
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
    assert not any(row["cells"] for row in page.data["mnist"]["rows"])
    assert "png" in str(page._repr_mimebundle_()[0].keys())
    shutil.copytree(RESULTS / "nottingham", tmp_path / "nottingham")
    (path, *_) = sorted((tmp_path / "nottingham").iterdir())
    path.write_text(json.dumps({"recipe": "nottingham"}))
    with pytest.raises(ValueError, match=re.escape(path.name)):
        explore.ledger("mnist", tmp_path)
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        explore.ledger("minst", tmp_path)
