"""Rows of recipes are trained at their quick scale, through to a line of the ledger.

The tests train the first row of each recipe, and one row of each model, for a moment. `make rehearsal` trains every row
for as long as its recipe says; then each row must be better than the baseline, which needs no model. The log ends with
a table of both scores. Rows that are the same run at this scale are trained once.
"""

import math
import time

import pytest

from rtx.evidence.ledger import read_result
from rtx.evidence.record import train
from rtx.tasks import task_by_name
from rtx.training.evaluate import evaluate
from rtx.training.recipe import load_recipe, recipe_names

SHORT = {"epochs": 1, "limit": 32, "limit_evaluation": 4}
LONGER = {"epochs": 2, "limit_evaluation": 50}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the rows: all of them for a rehearsal."""
    if metafunc.function is not test_a_row_trains:
        return
    rows, seen = [], set()
    for name in reversed(recipe_names()):  # translation is faster than headlines
        models = load_recipe(name).models
        for place, (row, values) in enumerate(models.items()):
            model = values.get("model", row), values.get("recurrent")
            if place == 0 or model not in seen or metafunc.config.getoption("rehearse"):
                rows.append((name, row))
            seen.add(model)
    metafunc.parametrize(("name", "row"), rows, ids=lambda value: value)


DONE = {}  # plan → its run


@pytest.fixture
def run(tmp_path, record_property):
    """Train a row; return the result, and whether its test score is better than the baseline, if that is asked for."""

    def once(name, row, overrides, baseline=True):
        plan = load_recipe(name).plan(row, scale="quick", overrides=overrides)
        key = repr((plan.model, plan.task, plan.task_arguments, sorted(plan.hyperparameters.items()), plan.settings))
        if key not in DONE:
            DONE[key] = trained(plan, baseline)
        result, better, cells = DONE[key]
        record_property("row", (name, row, *cells))
        return result, better

    def trained(plan, compared):
        begin = time.process_time()
        path = train(plan, runs=tmp_path / "runs", results=tmp_path, accelerator="cpu", enable_progress_bar=False)
        result, seconds = read_result(path), time.process_time() - begin
        assert (result.recipe, result.model, result.scale) == (plan.recipe.name, plan.row, "quick")
        task = task_by_name(plan.task, **plan.task_arguments)
        baseline = task.baseline() if compared else math.nan
        metric = next(iter(result.details), task.metric)
        scores = [f"{score:.4g}".replace("nan", "-") for score in (result.test, baseline)]
        cells = (result.data, metric, *scores, f"{seconds:.0f}")
        again = evaluate(next(tmp_path.rglob("best.safetensors")), limit=plan.settings.limit_evaluation)
        assert again[metric] == pytest.approx(result.test, rel=1e-4)  # from the checkpoint alone
        higher = task.best == "max" or task.per == "pair"  # BLEU, ROUGE
        return result, result.test > baseline if higher else result.test < baseline, cells

    return once


@pytest.mark.slow
def test_a_row_trains(name, row, run, request):
    whole = request.config.getoption("--rehearse")
    result, better = run(name, row, {} if whole else SHORT, whole)
    assert math.isfinite(result.test) and math.isfinite(result.validation) and result.parameters > 0
    assert better or not whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "row", "limit"), [("ffa-add", "attention-50", 2000), ("nottingham", "r-transformer", 64)]
)
def test_a_few_seconds_of_training_are_better_than_the_baseline(name, row, limit, run):
    assert run(name, row, LONGER | {"limit": limit})[1]
