"""Controls of notebook 11: what simple models reach on two published sets, and what a part of a model is good for.

`python -m studies.music_controls` writes `music_controls.json`. It takes about three minutes of one core. The second
half trains the small R-Transformer of notebook 11 as the notebook does: whole, without LocalRNN, without attention.
"""

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

import rtx
from rtx.lab.exercises import markov_per_key, nll_per_frame
from rtx.tasks import Task, task_by_name
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

SETS, SEEDS, UPDATES, LENGTH, BATCH = ("nottingham", "jsb"), (0, 1, 2), 300, 48, 8
PARTS = {"LocalRNN": {"local_layers": 0}, "attention": {"heads": 0}}
"""Part → the settings of a model that has none. The parts are in their order in a block."""
STORED = Path(__file__).with_suffix(".json")

Rolls = list[Float[Tensor, "T 88"]]


def rolls(task: Task, split: str) -> Rolls:
    """Return the whole pieces of a split."""
    return [torch.cat([one.inputs, one.target[-1:]]) for one in task.split(split)]


def simple_models(train: Rolls, test: Rolls) -> dict[str, float]:
    """Return the nats per frame of the marginal and of Markov per key, and the share of frames that repeat the last."""
    before, after = torch.cat([roll[:-1] for roll in train]), torch.cat([roll[1:] for roll in train])
    read, target = torch.cat([roll[:-1] for roll in test]), torch.cat([roll[1:] for roll in test])
    marginal = (after.sum(0) + 0.5) / (len(after) + 1)
    silent, sounding = markov_per_key.solution(before, after)
    found = {"marginal": marginal.expand_as(target), "Markov per key": torch.where(read == 1, sounding, silent)}
    costs = {name: nll_per_frame.solution(p.logit(), target).item() for name, p in found.items()}
    return {name: round(cost, 4) for name, cost in costs.items()} | {
        "repeats": round((read == target).all(1).double().mean().item(), 4)
    }


def trained(tunes: Rolls, seed: int, updates: int = UPDATES, **changes: int) -> nn.Module:
    """Return the model of notebook 11, with changed settings."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {"d_model": 128, "layers": 1, "heads": 4, "window": 6, "cell": "gru", "norm": "pre"}
    model = rtx.build("chorales", "r-transformer", **settings | changes)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    falling = torch.optim.lr_scheduler.LinearLR(adam, 1, 0, total_iters=updates)
    long_enough = [roll for roll in tunes if len(roll) >= LENGTH]
    for _ in range(updates):
        frames = torch.stack([_excerpt(long_enough) for _ in range(BATCH)])
        loss = nll_per_frame.solution(model(frames[:, :-1]).flatten(0, 1), frames[:, 1:].flatten(0, 1))
        adam.zero_grad()
        loss.backward()
        adam.step()
        falling.step()
    return model


def _excerpt(tunes: Rolls) -> Float[Tensor, "48 88"]:
    roll = tunes[int(torch.randint(len(tunes), ()))]
    start = int(torch.randint(len(roll) - LENGTH + 1, ()))
    return roll[start : start + LENGTH]


@torch.no_grad()
def cost(model: nn.Module, tunes: Rolls) -> float:
    """Return the nats per frame of whole pieces."""
    logits = torch.cat([model(roll[None, :-1])[0] for roll in tunes])
    return round(nll_per_frame.solution(logits, torch.cat([roll[1:] for roll in tunes])).item(), 4)


def parts(train: Rolls, test: Rolls, seed: int, updates: int = UPDATES) -> dict[str, Any]:
    """Return the nats per frame of the whole model, with each part switched off, and trained without it."""
    whole = trained(train, seed, updates)
    found: dict[str, Any] = {"seed": seed, "whole": cost(whole, test), "switched off": {}, "trained without": {}}
    for place, (part, without) in enumerate(PARTS.items()):
        partial: Any = deepcopy(whole)
        partial.backbone.blocks[0][place].sublayer.forward = lambda x, *_: torch.zeros_like(x)
        found["switched off"][part] = cost(partial, test)
        found["trained without"][part] = cost(trained(train, seed, updates, **without), test)
    return found


def main(path: Path = STORED) -> None:
    """Measure all and write the result with its conditions."""
    torch.set_num_threads(1)
    told = {
        "command": "python -m studies.music_controls",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "split": "test",
        "updates": UPDATES,
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }
    simple = {}
    for name in SETS:
        task = task_by_name(name)
        simple[name] = simple_models(rolls(task, "train"), rolls(task, "test"))
    chorales = task_by_name("chorales")
    train, test = rolls(chorales, "train"), rolls(chorales, "test")
    runs = [parts(train, test, seed) for seed in SEEDS]
    table = {"conditions": told, "simple": simple, "parts": runs}
    write_whole(path, (json.dumps(table, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
