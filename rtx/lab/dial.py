"""The locality dial: train small models on the task at given strengths of the rule and of the recall, and compare them.

`dial.json` holds the runs of `studies/locality_dial.py`. The sizes, the training and its length are ours; no paper has
them, and nothing is tuned.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rtx.lab.contest import Entrants, count, matched
from rtx.lab.learning import learn
from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.tasks.build import build
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Batch, Task, collate
from rtx.tasks.toy.locality_dial import optimal_loss, symbol_nll

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Strengths of the rule and of the recall that the explorer offers."""
STORED, SEEDS = (0.0, 0.5, 1.0), (0, 1, 2)
"""Strengths of both, and seeds of the task and the weights, that are in `dial.json`."""
SYMBOLS, LENGTH, SEQUENCES, TEST = 5, 30, 4000, 500
RUNS = Path(__file__).with_name("dial.json")
UPDATES, EVERY, BATCH, RATE = 300, 50, 32, 0.005
LEAD = 0.01  # nats; with a smaller lead nobody wins

ENTRANTS: Entrants = {
    "R-Transformer": {"model": "r-transformer", "d_model": 32, "layers": 2, "heads": 4, "window": 4, "cell": "gru"},
    "Transformer": {"model": "transformer", "d_model": 32, "layers": 2, "heads": 4},
    "GRU": {"model": "gru", "d_model": 32, "layers": 1},
    "TCN": {"model": "tcn", "d_model": 32, "layers": 4, "kernel": 3},
}
"""The `d_model` of the others is changed until they have about as many parameters as the R-Transformer."""

Cell = tuple[float, float]
"""Strengths of the rule and of the recall."""


@dataclass(frozen=True)
class Run:
    """One training, tested every `EVERY` updates, the first time before the first update.

    Args:
        model, local, long, seed: which model was trained on which task.
        after_local, after_recalled: nats per symbol above the best possible loss, for the two kinds of symbols.
        seconds: processor time.
    """

    model: str
    local: float
    long: float
    seed: int
    after_local: list[float]
    after_recalled: list[float]
    seconds: float

    def excess(self) -> list[float]:
        """Return the nats above the best possible loss, with equal weight for both kinds of symbols."""
        return [(a + b) / 2 for a, b in zip(self.after_local, self.after_recalled, strict=True)]


@cache
def dial_task(cell: Cell, seed: int) -> Task:
    """Return the task at these strengths. Each seed has its own rule and sequences."""
    local, long = cell
    task = task_by_name(
        "locality-dial", length=LENGTH, local=local, long=long, symbols=SYMBOLS, size=SEQUENCES, seed=seed
    )
    drawn = cache(lambda split: list(task.split(split)[: SEQUENCES if split == "train" else TEST]))
    return replace(task, examples=drawn)


def sized(entrants: Entrants) -> dict[str, dict[str, Any]]:
    """Return the models with the `d_model` that gives each about as many parameters as the R-Transformer has."""
    task = dial_task((1, 1), 0)
    goal = count(task, ENTRANTS["R-Transformer"])
    return {name: matched(task, arguments, goal) for name, arguments in entrants.items()}


def train(
    name: str, arguments: Mapping[str, Any], cell: Cell, seed: int, breathe: Callable[[], object] = lambda: None
) -> Run:
    """Train one model for about ten seconds. `breathe` is called after every update."""
    began, task = time.thread_time(), dial_task(cell, seed)
    with seeded(seed):
        model = build(task, **arguments)
    steps = learn(task, model, RATE, BATCH, seed=seed)
    test, tests = collate(task.split("test")[:TEST], task.per), []
    for update in range(0, UPDATES + 1, EVERY):
        for _ in islice(steps, EVERY if update else 0):
            breathe()
        with torch.no_grad(), evaluating(model):
            tests.append(above_best(task.predict(model, test), test, cell))
    local, recalled = ([round(one[kind], 5) for one in tests] for kind in (0, 1))
    return Run(name, *cell, seed, local, recalled, round(time.thread_time() - began, 1))


def above_best(predictions: Tensor, batch: Batch, cell: Cell) -> tuple[float, float]:
    """Return the nats per local and per recalled symbol above the best possible loss at these strengths."""
    local, recalled = (symbol_nll(predictions, batch, recall) for recall in (False, True))
    return (
        float(local.total / local.count) - optimal_loss(cell[0], SYMBOLS),
        float(recalled.total / recalled.count) - optimal_loss(cell[1], SYMBOLS),
    )


def by_model(runs: Sequence[Run], cell: Cell) -> dict[str, list[Run]]:
    """Return the runs of a cell by model. Only seeds that all models of the cell have are compared."""
    found: dict[str, dict[int, Run]] = {}
    for run in runs:
        if (run.local, run.long) == cell:
            found.setdefault(run.model, {})[run.seed] = run
    shared = set.intersection(*(set(seeds) for seeds in found.values())) if found else set()
    return {name: [seeds[seed] for seed in sorted(shared)] for name, seeds in found.items() if shared}


def winner(runs: Mapping[str, Sequence[Run]], at: int) -> tuple[str, float] | None:
    """Return the best model after `at` times `EVERY` updates, and the lead of its mean over the second best.

    Return None if nobody wins: there is one model only, the lead is below `LEAD`, or a seed of another model is as good
    as one of the best model's.
    """
    if len(runs) < 2:
        return None
    found = {name: [run.excess()[at] for run in one] for name, one in runs.items()}
    means = {name: sum(one) / len(one) for name, one in found.items()}
    first, *others = sorted(means, key=lambda name: means[name])
    if max(found[first]) >= min(value for name in others for value in found[name]):
        return None
    ahead = means[others[0]] - means[first]
    return (first, ahead) if ahead >= LEAD else None


def stored(path: Path = RUNS) -> tuple[dict[str, Any], list[Run]]:
    """Return the stored conditions and runs."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return table["conditions"], [Run(**run) for run in table["runs"]]
