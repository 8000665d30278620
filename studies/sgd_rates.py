"""Plain SGD on music: how many of 16 seeds stay finite over 40 tunes, at the two larger of the paper's rates?

`python studies/sgd_rates.py` trains the recipe nottingham's variant official (no clipping) and writes `sgd_rates.json`.
The weights start as here, or as equal copies, as in the authors' code. It takes about five minutes of one core.
"""

import json
import math
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path
from typing import Any

import torch

from rtx.tasks.loader import loader
from rtx.training.files import write_whole
from rtx.training.fit import new_trainee
from rtx.training.provenance import commit, hardware, versions
from rtx.training.recipe import load_recipe

RATES, STARTS, SEEDS, TUNES = (5e-4, 5e-5), ("separate", "copies"), range(16), 40
STORED = Path(__file__).with_suffix(".json")


def tunes_until_not_finite(rate: float, start: str, seed: int, tunes: int = TUNES) -> int | None:
    """Return the first tune whose loss is not finite, counted from 1; None if all are finite."""
    trainee = new_trainee(load_recipe("nottingham").plan("r-transformer", "official", {"init": start}), seed)
    task, model = trainee.task, trainee.model
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for number, batch in enumerate(islice(loader(task, "train", 1, seed), tunes), 1):
        optimizer.zero_grad()
        loss = task.loss(task.predict(model, batch), batch).total
        if not math.isfinite(loss.item()):
            return number
        loss.backward()
        optimizer.step()
    return None


def conditions() -> dict[str, Any]:
    """Return where the numbers come from."""
    return {
        "command": "python studies/sgd_rates.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "tunes": TUNES,
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }


def main(path: Path = STORED) -> None:
    """Train all and write the result."""
    torch.set_num_threads(1)
    told = conditions()
    runs = [
        {
            "learning_rate": rate,
            "start": start,
            "not_finite_at_tune": [tunes_until_not_finite(rate, start, seed) for seed in SEEDS],
        }
        for rate, start in product(RATES, STARTS)
    ]
    lines = ",\n".join(f"    {json.dumps(run)}" for run in runs)  # one line per run
    head = json.dumps({"conditions": told}, indent=2).removesuffix("\n}")
    write_whole(path, f'{head},\n  "runs": [\n{lines}\n  ]\n}}\n'.encode())


if __name__ == "__main__":
    main()
