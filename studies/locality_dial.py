"""The locality dial: which of four models learns what, for each strength of a local rule and of a recall.

`python studies/locality_dial.py` trains the runs that `rtx/lab/dial.json` does not have yet, and adds each to the file.
One run takes about ten seconds. To measure under other conditions, remove the file first.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import torch

from rtx.lab import dial
from rtx.lab.contest import count
from rtx.lab.dial import Cell, Run
from rtx.tasks.costs import multiply_adds
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions


def conditions() -> dict[str, Any]:
    """Return where the numbers come from."""
    task, made = dial.dial_task((1, 1), 0), dial.sized(dial.ENTRANTS)
    steps = dial.SYMBOLS + dial.LENGTH
    return {
        "command": "python studies/locality_dial.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "budget": f"{dial.UPDATES} updates of {dial.BATCH} sequences, "
        f"tested every {dial.EVERY} on {dial.TEST} sequences",
        "learning_rate": dial.RATE,
        "task": {"symbols": dial.SYMBOLS, "length": dial.LENGTH, "size": dial.SEQUENCES},
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
    for seed, cell, name in product(dial.SEEDS, product(dial.STORED, dial.STORED), dial.ENTRANTS):
        if (name, *cell, seed) not in done:
            yield name, cell, seed


def main(path: Path = dial.RUNS) -> None:
    """Train what is missing. The file is written after every run."""
    torch.set_num_threads(1)
    told, runs = dial.stored(path) if path.exists() else (conditions(), [])
    made = dial.sized(dial.ENTRANTS)
    for name, cell, seed in list(missing(runs)):
        runs.append(dial.train(name, made[name], cell, seed))
        lines = ",\n".join(f"    {json.dumps(asdict(run))}" for run in runs)  # one line per run
        head = json.dumps({"conditions": told}, indent=2).removesuffix("\n}")
        write_whole(path, f'{head},\n  "runs": [\n{lines}\n  ]\n}}\n'.encode())


if __name__ == "__main__":
    main()
