"""The locality dial's sweep: which model learns what, by the strengths of local rules and of long recall.

`python -m rtx.lab.dial` runs what is missing in `dial.json`, the sweep that ships with the package, and adds it; cut
short, it goes on where it was. It is ours: sizes, training and budget are no paper's, and nothing is tuned.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rtx.lab.contest import Entrants, count, matched
from rtx.lab.learning import learn
from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.tasks.build import build
from rtx.tasks.costs import multiply_adds
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Batch, Task, collate
from rtx.tasks.toy.locality_dial import optimal_loss, symbol_nll
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the rule and of the recall; a sweep may hold some of them only."""
STORED, SEEDS = (0.0, 0.5, 1.0), (0, 1, 2)
"""What `dial.json` holds: these strengths of both, and these seeds, of the task and of the weights. With more of them
here the command adds what is missing."""
SYMBOLS, LENGTH, SEQUENCES, TEST = 5, 30, 4000, 500
SWEEP = Path(__file__).with_name("dial.json")
UPDATES, EVERY, BATCH, RATE = 300, 50, 32, 0.005
LEAD = 0.01  # nats; who is ahead by less has not won

ENTRANTS: Entrants = {
    "R-Transformer": {"model": "r-transformer", "d_model": 32, "layers": 2, "heads": 4, "window": 4, "cell": "gru"},
    "Transformer": {"model": "transformer", "d_model": 32, "layers": 2, "heads": 4},
    "GRU": {"model": "gru", "d_model": 32, "layers": 1},
    "TCN": {"model": "tcn", "d_model": 32, "layers": 4, "kernel": 3},
}
"""The `d_model` of all but the first is changed until they have about as many parameters as that."""

Cell = tuple[float, float]
"""Strengths of the rule and of the recall."""


@dataclass(frozen=True)
class Run:
    """One training, tested every `EVERY` updates, from before the first.

    Args:
        model, local, long, seed: what was trained on what.
        after_local, after_recalled: nats per symbol above the best that can be had, of the two kinds of symbols.
        seconds: of processor time.
    """

    model: str
    local: float
    long: float
    seed: int
    after_local: list[float]
    after_recalled: list[float]
    seconds: float

    def excess(self) -> list[float]:
        """Nats above the best there is, both kinds of symbols counting the same."""
        return [(a + b) / 2 for a, b in zip(self.after_local, self.after_recalled, strict=True)]


@cache
def dial_task(cell: Cell, seed: int) -> Task:
    """The task at these strengths, drawn once; its rule and all sequences differ between seeds."""
    local, long = cell
    task = task_by_name(
        "locality-dial", length=LENGTH, local=local, long=long, symbols=SYMBOLS, size=SEQUENCES, seed=seed
    )
    held = cache(lambda split: list(task.split(split)[: SEQUENCES if split == "train" else TEST]))
    return replace(task, examples=held)


def sized(entrants: Entrants) -> dict[str, dict[str, Any]]:
    """The entrants as they are trained, all with about as many parameters as R-Transformer has."""
    task = dial_task((1, 1), 0)
    goal = count(task, ENTRANTS["R-Transformer"])
    return {name: matched(task, arguments, goal) for name, arguments in entrants.items()}


def train(
    name: str, arguments: Mapping[str, Any], cell: Cell, seed: int, breathe: Callable[[], object] = lambda: None
) -> Run:
    """One run, of about ten seconds; `breathe` is called after every update."""
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
    """Nats per local and per recalled symbol above the best that can be had at these strengths."""
    local, recalled = (symbol_nll(predictions, batch, recall) for recall in (False, True))
    return (
        float(local.total / local.count) - optimal_loss(cell[0], SYMBOLS),
        float(recalled.total / recalled.count) - optimal_loss(cell[1], SYMBOLS),
    )


def by_model(runs: Sequence[Run], cell: Cell) -> dict[str, list[Run]]:
    """The runs of a cell by model, of those seeds only that all models have there which have any."""
    found: dict[str, dict[int, Run]] = {}
    for run in runs:
        if (run.local, run.long) == cell:
            found.setdefault(run.model, {})[run.seed] = run
    shared = set.intersection(*(set(seeds) for seeds in found.values())) if found else set()
    return {name: [seeds[seed] for seed in sorted(shared)] for name, seeds in found.items() if shared}


def winner(runs: Mapping[str, Sequence[Run]], at: int) -> tuple[str, float] | None:
    """Who was best after `at` times `EVERY` updates, and by how many nats the next one's mean is above its own.

    None is a draw: the means are less than `LEAD` apart, or some seed of another model is as good as one of the best. A
    model alone wins nothing.
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


def stored() -> tuple[dict[str, Any], list[Run]]:
    """What ships with the package: under what conditions it was measured, and the runs."""
    return read(SWEEP)


def read(path: Path) -> tuple[dict[str, Any], list[Run]]:
    """A sweep's conditions and runs."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return table["conditions"], [Run(**run) for run in table["runs"]]


def conditions() -> dict[str, Any]:
    """Where a sweep's numbers come from."""
    task, made = dial_task((1, 1), 0), sized(ENTRANTS)
    return {
        "command": "python -m rtx.lab.dial",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "budget": f"{UPDATES} updates of {BATCH} sequences, tested every {EVERY} on {TEST} sequences",
        "learning_rate": RATE,
        "task": {"symbols": SYMBOLS, "length": LENGTH, "size": SEQUENCES},
        "models": made,
        "parameters": {name: count(task, one) for name, one in made.items()},
        "multiply_adds": {name: multiply_adds(task, steps=SYMBOLS + LENGTH, **one) for name, one in made.items()},
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }


def missing(runs: Sequence[Run]) -> Iterator[tuple[str, Cell, int]]:
    """What the stored sweep lacks, all of a seed before the next."""
    done = {(run.model, run.local, run.long, run.seed) for run in runs}
    for seed, cell, name in product(SEEDS, product(STORED, STORED), ENTRANTS):
        if (name, *cell, seed) not in done:
            yield name, cell, seed


def main(path: Path = SWEEP) -> None:
    """Run what is missing; the file is written after every run. A sweep under other conditions: remove the file."""
    torch.set_num_threads(1)
    told, runs = read(path) if path.exists() else (conditions(), [])
    made = sized(ENTRANTS)
    for name, cell, seed in list(missing(runs)):
        runs.append(train(name, made[name], cell, seed))
        lines = ",\n".join(f"    {json.dumps(asdict(run))}" for run in runs)  # a line each
        head = json.dumps({"conditions": told}, indent=2).removesuffix("\n}")
        write_whole(path, f'{head},\n  "runs": [\n{lines}\n  ]\n}}\n'.encode())


if __name__ == "__main__":
    main()
