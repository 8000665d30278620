"""What is chosen is the same as a plan and as a command line."""

import shlex

import pytest
import typer

from rtx.cli.commands import app
from rtx.cli.train import parse_setting
from rtx.lab.choice import BUNDLED, Choice, offered, rows
from rtx.training.recipe import Plan, load_recipe

ENDS = [Choice(recipe, rows(recipe, "quick")[place]) for recipe in BUNDLED.values() for place in (0, -1)]
CHANGED = [
    Choice("mnist", "r-transformer", overrides={"learning_rate": 1e-05, "dropout": 0.0, "cell": "lstm"}, seed=4),
    Choice("multi30k", "baseline", overrides={"bidirectional": True, "size": 1000, "epochs": 2}),
    Choice("ptb-word", "tcn", "cpu", {"d_model": 48, "clip": 0.25}, 1),
]


def parsed(command: str) -> tuple[Plan, int]:
    """What the real command would train; it is parsed, not run."""
    program, verb, *words = shlex.split(command)
    assert (program, verb) == ("rtx", "train")
    given = typer.main.get_command(app).commands["train"].make_context("train", words).params  # type: ignore[attr-defined]
    settings = dict(map(parse_setting, given["set_"] or []))
    recipe = load_recipe(given["recipe"])
    assert given["epochs"] is None and given["precision"] == "32-true"
    return recipe.plan(given["model"], given["variant"], settings, given["scale"].value), given["seed"]


@pytest.mark.parametrize("choice", [*ENDS, *CHANGED], ids=lambda choice: choice.command())
def test_the_command_makes_the_same_plan(choice: Choice) -> None:
    assert parsed(choice.command()) == (choice.plan(), choice.seed)


def test_bundled_tasks_are_those_of_their_recipes() -> None:
    for task, recipe in BUNDLED.items():
        assert {Choice(recipe, row).plan().task for row in rows(recipe, "quick")} == {task}
        assert offered()[task] == (recipe, "quick")


def test_downloaded_data_are_offered_only_if_they_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    offered.cache_clear()
    assert set(offered()) == set(BUNDLED)
    offered.cache_clear()


def test_downloaded_data_are_offered(real_data) -> None:
    offered.cache_clear()
    assert offered()["mnist"] == ("mnist", "cpu")
    assert Choice("mnist", "gru", "cpu").plan().task == "mnist-14"
    offered.cache_clear()


def test_rows_that_are_the_same_run_are_named_once() -> None:
    assert rows("ffa-add", "quick") == ["attention-50", "mean-50"]
