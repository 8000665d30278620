"""The locality dial: which of four models learns what, for each strength of a local rule and of a recall.

`python studies/locality_dial.py` trains the runs that `locality_dial.json` does not have yet, and adds each to the
file. One run takes about ten seconds. To measure under other conditions, remove the file first.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
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

STORED = Path(__file__).with_suffix(".json")
STRENGTHS, SEEDS = (0.0, 0.5, 1.0), (0, 1, 2)  # of the rule and of the recall; of the task and the weights
SYMBOLS, LENGTH, SEQUENCES, TEST, RATE = 5, 30, 4000, 500, 0.005
UPDATES, EVERY, BATCH = 300, 50, 32

Cell = tuple[float, float]
"""Strengths of the rule and of the recall."""

ENTRANTS: Entrants = {
    "R-Transformer": {"model": "r-transformer", "d_model": 32, "layers": 2, "heads": 4, "window": 4, "cell": "gru"},
    "Transformer": {"model": "transformer", "d_model": 32, "layers": 2, "heads": 4},
    "GRU": {"model": "gru", "d_model": 32, "layers": 1},
    "TCN": {"model": "tcn", "d_model": 32, "layers": 4, "kernel": 3},
}
"""The `d_model` of the others is changed until they have about as many parameters as the R-Transformer."""


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


def train(name: str, arguments: Mapping[str, Any], cell: Cell, seed: int) -> Run:
    """Train one model for about ten seconds."""
    began, task = time.thread_time(), dial_task(cell, seed)
    with seeded(seed):
        model = build(task, **arguments)
    steps = learn(task, model, RATE, BATCH, seed=seed)
    test, tests = collate(task.split("test")[:TEST], task.per), []
    for update in range(0, UPDATES + 1, EVERY):
        for _ in islice(steps, EVERY if update else 0):
            pass
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


def conditions() -> dict[str, Any]:
    """Return where the numbers come from."""
    task, made = dial_task((1, 1), 0), sized(ENTRANTS)
    steps = SYMBOLS + LENGTH
    return {
        "command": "python studies/locality_dial.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "budget": f"{UPDATES} updates of {BATCH} sequences, tested every {EVERY} on {TEST} sequences",
        "learning_rate": RATE,
        "task": {"symbols": SYMBOLS, "length": LENGTH, "size": SEQUENCES},
        "models": made,
        "parameters": {name: count(task, one) for name, one in made.items()},
        "multiply_adds": {name: multiply_adds(task, steps=steps, **one) for name, one in made.items()},
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }


def missing(runs: Sequence[Run]) -> Iterator[tuple[str, Cell, int]]:
    """Yield model, cell and seed of the runs that are not there yet, one seed after the other."""
    done = {(run.model, run.local, run.long, run.seed) for run in runs}
    for seed, cell, name in product(SEEDS, product(STRENGTHS, STRENGTHS), ENTRANTS):
        if (name, *cell, seed) not in done:
            yield name, cell, seed


def stored(path: Path = STORED) -> tuple[dict[str, Any], list[Run]]:
    """Return the stored conditions and runs."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return table["conditions"], [Run(**run) for run in table["runs"]]


def main(path: Path = STORED) -> None:
    """Train what is missing. The file is written after every run."""
    torch.set_num_threads(1)
    told, runs = stored(path) if path.exists() else (conditions(), [])
    made = sized(ENTRANTS)
    for name, cell, seed in list(missing(runs)):
        runs.append(train(name, made[name], cell, seed))
        lines = ",\n".join(f"    {json.dumps(asdict(run))}" for run in runs)  # one line per run
        head = json.dumps({"conditions": told}, indent=2).removesuffix("\n}")
        write_whole(path, f'{head},\n  "runs": [\n{lines}\n  ]\n}}\n'.encode())


if __name__ == "__main__":
    main()
