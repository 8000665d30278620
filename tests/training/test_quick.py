"""Every row of every recipe is trained, on little data for a moment, down to a line of the ledger."""

import math

import pytest

from rtx.tasks import task_by_name
from rtx.training.ledger import read_result
from rtx.training.recipe import load_recipe, recipe_names
from rtx.training.run import train

ROWS = [(name, row) for name in recipe_names() for row in load_recipe(name).models]
SHORT = {"epochs": 1, "limit": 64, "limit_evaluation": 20}
SURE = [
    ("ffa-add", "attention-50"),
    ("ffa-multiply", "attention-50"),
    ("nottingham", "r-transformer"),
    ("jsb", "r-transformer"),
]
LONGER = {"epochs": 3, "limit": 2000}


def run(name, row, tmp_path, overrides):
    plan = load_recipe(name).plan(row, scale="quick", overrides=overrides)
    path = train(plan, runs=tmp_path / "runs", results=tmp_path, accelerator="cpu", enable_progress_bar=False)
    return plan, read_result(path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), ROWS, ids=lambda value: value)
def test_a_row_trains_in_its_smallest_form(name, row, tmp_path):
    plan, result = run(name, row, tmp_path, SHORT)
    assert (result.recipe, result.model, result.scale) == (name, row, "quick")
    assert math.isfinite(result.test) and math.isfinite(result.validation)
    assert result.metric == task_by_name(plan.task, **plan.task_arguments).metric
    assert result.parameters > 0 and result.epoch == 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), SURE, ids=lambda value: value)
def test_a_few_seconds_are_better_than_the_trivial_answer(name, row, tmp_path):
    plan, result = run(name, row, tmp_path, LONGER)
    task = task_by_name(plan.task, **plan.task_arguments)
    assert result.test < task.trivial() if task.best == "min" else result.test > task.trivial()
