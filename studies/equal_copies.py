"""The R-Transformer of the authors' code starts with equal copies of weights: does that change what it learns?

`python studies/equal_copies.py` trains small models from separate and from copied weights, and writes
`equal_copies.json`. It takes about a quarter of an hour of one core.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from rtx.lab.learning import learn
from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.tasks import build, task_by_name
from rtx.tasks.task import collate
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

STARTS = ("separate", "copies")
STORED = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Case:
    """What is trained. The learning rates and batch sizes are those of the recipes at their quick scale."""

    task: str
    norm: str
    local_layers: int
    sizes: dict[str, Any]
    learning_rate: float
    batch_size: int
    updates: int
    every: int
    seeds: tuple[int, ...]


DIGITS = {"d_model": 24, "layers": 2, "heads": 2, "window": 7}
CHORALES = {"d_model": 48, "layers": 2, "heads": 4, "window": 6}
CASES = (
    Case("digits", "pre", 2, DIGITS, 5e-3, 32, 300, 100, (0, 1, 2, 3, 4, 5)),
    Case("chorales", "pre", 1, CHORALES, 1e-2, 2, 560, 140, (0, 1, 2, 3, 4)),
    Case("chorales", "post", 1, CHORALES, 1e-2, 2, 560, 140, (0, 1, 2, 3, 4)),
)


def scores(case: Case, start: str, seed: int) -> list[float]:
    """Train one model. Return its score on the test split after every `case.every` updates."""
    task = task_by_name(case.task)
    with seeded(seed):
        arguments = {"norm": case.norm, "local_layers": case.local_layers, "init": start}
        model = build(task, "r-transformer", **arguments, **case.sizes)
    steps, test = learn(task, model, case.learning_rate, case.batch_size, seed=seed), task.split("test")
    batch, found = collate(test[: len(test)], task.per), []
    for _ in range(case.updates // case.every):
        for _ in islice(steps, case.every):
            pass
        with torch.no_grad(), evaluating(model):
            found.append(round(task.score(task.predict(model, batch), batch), 4))
    return found


def compare(case: Case) -> dict[str, Any]:
    """Return a case with the scores of both starts, and how much better copies are at the end, seed by seed."""
    found = {start: [scores(case, start, seed) for seed in case.seeds] for start in STARTS}
    sign = 1 if task_by_name(case.task).best == "max" else -1
    gains = [sign * (b[-1] - a[-1]) for a, b in zip(found["separate"], found["copies"], strict=True)]
    return {**asdict(case), "metric": task_by_name(case.task).metric, "scores": found} | {
        "gain_of_copies": {"by_seed": [round(gain, 4) for gain in gains], "mean": round(mean(gains), 4)}
    }


def main(path: Path = STORED) -> None:
    """Train all and write the result."""
    torch.set_num_threads(1)
    conditions = {
        "command": "python studies/equal_copies.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }
    lines = ",\n".join(f"    {json.dumps(compare(case))}" for case in CASES)  # one line per case
    head = json.dumps({"conditions": conditions}, indent=2).removesuffix("\n}")
    write_whole(path, f'{head},\n  "cases": [\n{lines}\n  ]\n}}\n'.encode())


if __name__ == "__main__":
    main()
