"""Every row of every recipe is trained at its quick scale down to a line of the ledger: for a moment, or all of it.

The log ends with a table of what each row scored, and what an answer without a model scores. `make rehearsal` trains
for as long as the recipes say, and then each row must be the better of the two. At this scale rows may be the same run,
as those of one length and of another: that is made once.
"""

import math
import time
from functools import cache

import pytest

from rtx.evidence.ledger import read_result
from rtx.evidence.record import train
from rtx.tasks import task_by_name
from rtx.training.evaluate import evaluate
from rtx.training.recipe import load_recipe, recipe_names

ROWS = [(name, row) for name in recipe_names() for row in load_recipe(name).models]
SHORT = {"epochs": 1, "limit": 64, "limit_evaluation": 20}
SURE = [("ffa-add", "attention-50"), ("ffa-multiply", "attention-50"), ("nottingham", "r-transformer")]
LONGER = {"epochs": 2, "limit": 2000}


@cache
def baseline_score(task, arguments):
    found = task_by_name(task, **dict(arguments))
    return found, found.baseline()


DONE = {}  # plan → its run


@pytest.fixture
def run(tmp_path, record_property):
    """Train a row; whether its test score is better than the baseline."""

    def once(name, row, overrides):
        plan = load_recipe(name).plan(row, scale="quick", overrides=overrides)
        key = repr((plan.model, plan.task, plan.task_arguments, sorted(plan.hyperparameters.items()), plan.settings))
        if key not in DONE:
            DONE[key] = trained(plan)
        result, better, cells = DONE[key]
        record_property("row", (name, row, *cells))
        return result, better

    def trained(plan):
        begin = time.process_time()
        path = train(plan, runs=tmp_path / "runs", results=tmp_path, accelerator="cpu", enable_progress_bar=False)
        result, seconds = read_result(path), time.process_time() - begin
        assert (result.recipe, result.model, result.scale) == (plan.recipe.name, plan.row, "quick")
        task, baseline = baseline_score(plan.task, tuple(plan.task_arguments.items()))
        metric = next(iter(result.details), task.metric)
        scores = [f"{score:.4g}" for score in (result.test, baseline)]
        cells = (result.data, metric, *scores, f"{seconds:.0f}")
        again = evaluate(next(tmp_path.rglob("best.safetensors")), limit=plan.settings.limit_evaluation)
        assert again[metric] == pytest.approx(result.test, rel=1e-4)  # by what its checkpoint says of itself
        higher = task.best == "max" or task.per == "pair"  # BLEU, ROUGE
        return result, result.test > baseline if higher else result.test < baseline, cells

    return once


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), ROWS, ids=lambda value: value)
def test_a_row_trains(name, row, run, request):
    whole = request.config.getoption("--rehearse")
    result, better = run(name, row, {} if whole else SHORT)
    assert math.isfinite(result.test) and math.isfinite(result.validation) and result.parameters > 0
    assert better or not whole


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), SURE, ids=lambda value: value)
def test_a_few_seconds_are_better_than_the_trivial_answer(name, row, run):
    assert run(name, row, LONGER)[1]
