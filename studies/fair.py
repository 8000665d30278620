"""A fair comparison of small models, as the studies of the first lessons use it.

All models of a problem learn from freshly drawn data of one kind. They have the same number of updates and the same
choice of learning rates. Each is trained at every rate with every seed, or with the first seed only if that is enough
to choose. A seed draws the weights first and then the batches, so models with different parameters see different
batches. A model's rate is the one with the best mean score on validation data after the last update. Results are on
test data, which no choice has seen. There are two exceptions: the seven sequences of `start_of_a_memory` serve for
both, and one rate of `dates_translated` (see there).
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

RATES, SEEDS = (0.001, 0.003, 0.01), (0, 1, 2)
WIDE = (*RATES, 0.03)  # for studies in which models chose 0.01
VALIDATION, TEST = 10_000, 20_000  # seeds of the data that choose the rate, and of the data that are reported

Scores = dict[str, list[float]]
"""Named scores; the first number of the first name is compared on validation data."""


@dataclass(frozen=True)
class Problem:
    """What the models of one comparison learn.

    Args:
        models: makes each model, by its name.
        draw: returns so many sequences, freshly drawn: inputs and answers, or whatever `loss` takes.
        loss: of a model on what was drawn.
        test: scores of a model, on data that it draws itself.
        after: the numbers of updates after which it is tested; the last one ends the training.
        batch: sequences in an update.
        best: whether the highest or the lowest score is best.
        validate: as `test`, on other data. By default `test` itself, which then draws with another seed.
        chosen: the rate of each model that the seeds after the first one use. By default they use all rates.
        write: a text that a trained model writes; it is stored with the run.
        rates: the learning rates from which validation chooses.
        warm_up: the number of updates over which the rate rises linearly from 0.
    """

    models: Mapping[str, Callable[[], nn.Module]]
    draw: Callable[[int], tuple[Any, ...]]
    loss: Callable[..., Tensor]
    test: Callable[[nn.Module], Scores]
    after: Sequence[int]
    batch: int = 32
    best: Literal["max", "min"] = "max"
    validate: Callable[[nn.Module], Scores] | None = None
    chosen: Mapping[str, float] | None = None
    write: Callable[[nn.Module], str] | None = None
    rates: Sequence[float] = RATES
    warm_up: int = 0


def train(problem: Problem, model: str, rate: float, seed: int) -> dict[str, Any]:
    """Train one model with Adam. Return its scores after each number of updates; a score that overflowed is None."""
    with seeded(seed):
        network = problem.models[model]()
        optimizer = torch.optim.Adam(network.parameters(), rate)
        validation, test = [], []
        for update in range(1, problem.after[-1] + 1):
            if update <= problem.warm_up:
                optimizer.param_groups[0]["lr"] = rate * update / problem.warm_up
            loss = problem.loss(network, *problem.draw(problem.batch))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            if update in problem.after:
                chosen_by = _scores(problem.validate or problem.test, network, VALIDATION)
                validation.append(next(iter(chosen_by.values()))[0])
                test.append(_scores(problem.test, network, TEST))
    run = {"model": model, "rate": rate, "seed": seed, "parameters": sum(p.numel() for p in network.parameters())}
    written: dict[str, Any] = {}
    if problem.write:
        with evaluating(network), torch.no_grad():
            written["written"] = problem.write(network)
    return run | {"validation": validation, "test": test} | written


def _scores(test: Callable[[nn.Module], Scores], network: nn.Module, seed: int) -> dict[str, list[float | None]]:
    with seeded(seed), evaluating(network), torch.no_grad():
        return {name: [_rounded(one) for one in scores] for name, scores in test(network).items()}


def _rounded(score: float) -> float | None:
    return round(score, 4) if math.isfinite(score) else None  # JSON has no other number


def compare(path: Path, problems: Mapping[str, Problem]) -> None:
    """Train what the file does not have yet, and write the file after every run."""
    torch.set_num_threads(1)
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    table = {"conditions": conditions(path, problems), "runs": []} | table
    table["conditions"] |= asked(problems)  # a later version of a study can ask for more
    runs = table["runs"]
    done = {(run["problem"], run["model"], run["rate"], run["seed"]) for run in runs}
    for name, model, rate, seed in wanted(problems):
        if (name, model, rate, seed) not in done:
            runs.append({"problem": name, "commit": commit()} | train(problems[name], model, rate, seed))
            lines = ",\n".join(f"    {json.dumps(run)}" for run in runs)  # one line per run
            head = json.dumps({"conditions": table["conditions"]}, indent=2).removesuffix("\n}")
            write_whole(path, f'{head},\n  "runs": [\n{lines}\n  ]\n}}\n'.encode())


def wanted(problems: Mapping[str, Problem]) -> Iterator[tuple[str, str, float, int]]:
    """Yield problem, model, rate and seed of all runs."""
    for seed, (name, problem) in product(SEEDS, problems.items()):
        for model, rate in product(problem.models, problem.rates):
            if seed == SEEDS[0] or problem.chosen is None or rate == problem.chosen[model]:
                yield name, model, rate, seed


def asked(problems: Mapping[str, Problem]) -> dict[str, Any]:
    """Return what the problems ask for."""
    return {
        "updates": {name: list(problem.after) for name, problem in problems.items()},
        "batch": {name: problem.batch for name, problem in problems.items()},
        "best": {name: problem.best for name, problem in problems.items()},
        "rates": sorted({rate for problem in problems.values() for rate in problem.rates}),
    }


def conditions(path: Path, problems: Mapping[str, Problem]) -> dict[str, Any]:
    """Return where the numbers come from."""
    return {
        "command": f"python -m studies.{path.stem}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **asked(problems),
        "seeds": list(SEEDS),
        "hardware": hardware(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }
