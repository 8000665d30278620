"""Read the stored results of the studies that compare models with a learning rate chosen for each of them."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

from rtx.nn.validate import check_choice

Runs = list[dict[str, Any]]


def chosen_runs(path: str | Path, problem: str) -> dict[str, Runs]:
    """Return the runs of each model, one for each seed, with the learning rate that validation chose.

    A model's rate is the one with the best mean validation over its seeds, after the last update. Of equally good rates
    it is the one that was better before. Each run has "rate", "seed" and "parameters". It has "validation" and "test"
    after each number of updates that the file's conditions name.

    Args:
        path: a result of `studies/fair.py`, such as "../studies/first_symbol.json".
        problem: one of the problems in the file.

    Raises:
        ValueError: if the file has no such problem.
    """
    stored = json.loads(Path(path).read_text(encoding="utf-8"))
    runs = stored["runs"]
    check_choice("problem", problem, sorted({run["problem"] for run in runs}))
    by_model: dict[str, dict[float, Runs]] = {}
    for run in runs:
        if run["problem"] == problem:
            by_model.setdefault(run["model"], {}).setdefault(run["rate"], []).append(run)
    best = {"max": max, "min": min}[stored.get("conditions", {}).get("best", {}).get(problem, "max")]
    return {model: best(rates.values(), key=_validation_from_the_end) for model, rates in by_model.items()}


def _validation_from_the_end(runs: Runs) -> list[float]:
    return [mean(scores) for scores in zip(*(reversed(run["validation"]) for run in runs), strict=True)]
