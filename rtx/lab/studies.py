"""Read the stored results of the studies that compare models with a learning rate chosen for each of them."""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from statistics import mean
from typing import Any

from rtx.nn.validate import check_choice

Runs = list[dict[str, Any]]


def chosen_runs(path: str | Path, problem: str) -> dict[str, Runs]:
    """Return the runs of each model, one for each seed, with the learning rate that validation chose.

    A model's rate is the one with the best mean validation after the last update, over the seeds that all of its rates
    have. Of equally good rates it is the one that was better before, then the one with more seeds. A rate with which a
    score overflowed is the worst. Each run has
    "rate", "seed" and "parameters". It has "validation" and "test" after each number of updates that the file's
    conditions name.

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
    sign = -1 if stored.get("conditions", {}).get("best", {}).get(problem) == "min" else 1
    return {model: max(rates.values(), key=_order(rates, sign)) for model, rates in by_model.items()}


def _order(rates: dict[float, Runs], sign: int) -> Callable[[Runs], list[float]]:
    """Return the key by which the runs of a rate are compared: means from the last validation to the first."""
    shared = set.intersection(*({run["seed"] for run in runs} for runs in rates.values()))

    def key(runs: Runs) -> list[float]:
        compared = [reversed(run["validation"]) for run in runs if run["seed"] in shared]
        means = (-inf if None in scores else sign * mean(scores) for scores in zip(*compared, strict=True))
        return [*means, len(runs)]

    return key
