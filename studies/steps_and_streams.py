"""How long does a step of a stream take, and is a scan faster than a loop? (Notebook 16.)

Four models read 600 positions one by one. Then `h_t = a_t h_{t-1} + b_t` is computed for 1,000 steps, by a loop and by
a scan, with narrow and wide rows. `python -m studies.steps_and_streams` writes `steps_and_streams.json`. It takes
half a minute. Models and ways take turns, and the least time counts: what else runs on the machine adds time only.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import torch

import rtx
from rtx.nn import reference
from rtx.nn.linear_recurrence import linear_scan
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

STORED = Path(__file__).with_suffix(".json")
POSITIONS, EVERY, ROUNDS = 600, 100, 7
STEPS, WIDTHS, TIMES = 1000, (8, 64, 512, 2048), 15
MODELS: dict[str, Callable[[], rtx.models.CausalModel]] = {
    "Transformer": lambda: rtx.Transformer(32, 3, 2),
    "R-Transformer": lambda: rtx.RTransformer(32, 3, 2, 7),
    "Griffin": lambda: rtx.Griffin(32, 3, 2, 32),
    "GRU": lambda: rtx.RNN(32, 3),
}


def seconds(call: Callable[..., Any], *arguments: Any) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


@torch.no_grad()
def streamed(model: rtx.models.CausalModel) -> list[float]:
    """Return the seconds of each step."""
    found: list[float] = []
    state = None
    for x in torch.randn(POSITIONS, 1, 32):
        start = time.perf_counter()
        _, state = model.step(x, state)
        found.append(time.perf_counter() - start)
    return found


def streams() -> dict[str, list[float]]:
    """Return the milliseconds of a step, by model and hundred of positions.

    It is the median over 100 steps, and the least of seven streams.
    """
    models = {name: make().eval() for name, make in MODELS.items()}
    runs = [{name: streamed(model) for name, model in models.items()} for _ in range(ROUNDS)]
    return {
        name: [
            round(1e3 * min(median(run[name][t : t + EVERY]) for run in runs), 3) for t in range(0, POSITIONS, EVERY)
        ]
        for name in models
    }


@torch.no_grad()
def scans() -> dict[str, dict[str, float]]:
    """Return the milliseconds of a loop and of a scan, by the width of a row: the least of fifteen."""
    found = {}
    for width in WIDTHS:
        a, b = torch.rand(1, STEPS, width), torch.randn(1, STEPS, width)
        ways = {"loop": reference.linear_scan, "scan": linear_scan}
        took = [{name: seconds(way, a, b) for name, way in ways.items()} for _ in range(TIMES)]
        found[str(width)] = {name: round(1e3 * min(one[name] for one in took), 3) for name in ways}
    return found


def main(path: Path = STORED) -> None:
    """Measure all and write the result with its conditions."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    told = {
        "command": "python -m studies.steps_and_streams",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "threads": 1,
        "positions": POSITIONS,
        "every": EVERY,
        "steps": STEPS,
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }
    table = {"conditions": told, "ms of a step": streams(), "ms of 1,000 steps": scans()}
    write_whole(path, (json.dumps(table, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
