"""The stored runs of the locality dial: small models at given strengths of a local rule and of a long recall.

`studies/locality_dial.py` trained them. The sizes, the training and its length are ours; no paper has them, and
nothing is tuned.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STORED, SEEDS = (0.0, 0.5, 1.0), (0, 1, 2)
"""Strengths of both, and seeds of the task and the weights, that are in `dial.json`."""
RUNS = Path(__file__).with_name("dial.json")
UPDATES, EVERY, BATCH = 300, 50, 32
LEAD = 0.01  # nats; with a smaller lead nobody wins

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
