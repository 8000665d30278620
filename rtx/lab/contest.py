"""Several models learn one task in turns, under equal conditions: who comes how far, and when."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from typing import Any

import torch
from torch import nn

from rtx.lab.background import Background
from rtx.lab.learning import learn
from rtx.lab.seeded import seeded
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_above_zero, check_choice, check_positive
from rtx.tasks.build import build
from rtx.tasks.costs import multiply_adds
from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Task

EQUAL = {
    "parameters": "updates",
    "multiply-adds": "billion multiply-adds, forwards",
    "seconds": "seconds of learning",
}
"""What can be equal, and what is spent then."""
PROBE = 128  # sequences of the validation split that are scored

Entrants = Mapping[str, Mapping[str, Any]]
"""Name → the arguments of `rtx.build`: its `model`, and the hyper-parameters."""


@dataclass
class Racer:
    """One model with one seed: what it has spent, and its score then, at each turn."""

    model: nn.Module
    steps: Iterator[float]
    per_update: float | None  # what an update spends; None: its seconds
    spent: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    now: float = 0.0

    def advance(self, background: Background, until: float) -> None:
        """Learn until so much is spent."""
        while self.now < until:
            began = time.perf_counter()
            next(self.steps)
            self.now += time.perf_counter() - began if self.per_update is None else self.per_update
            background.breathe()


class Contest:
    """Entrants with several seeds each, which take turns, so that what disturbs one disturbs all.

    Args:
        task: what they learn; not of pairs.
        entrants: the models. The first one is the measure of the others.
        equal: "parameters": each one's `d_model` is changed until it has about as many as the first, and all make
            `updates`. "multiply-adds": all compute as much as the first does in `updates`, as they are. "seconds": all
            learn for `seconds`, as they are.
        updates, seconds: of each model and seed.
        seeds: how many.
        turns: how often each is scored.
        learning_rate, batch_size: of all.
        watch: called now and then, in the thread that trains.

    Raises:
        ValueError: if there is no entrant, or an argument is out of its range.
    """

    def __init__(
        self,
        task: Task,
        entrants: Entrants,
        equal: str = "seconds",
        updates: int = 100,
        seconds: float = 5.0,
        seeds: int = 3,
        turns: int = 10,
        learning_rate: float = 3e-3,
        batch_size: int = 32,
        watch: Callable[[], object] = lambda: None,
    ) -> None:
        check_choice("equal", equal, EQUAL)
        if not entrants or task.per == "pair":
            raise ValueError(f"entrants: expected at least one, for a task of no pairs, got {list(entrants)}")
        self.task, self.equal, self.turns = task, equal, check_positive("turns", turns)
        self.racers: dict[str, list[Racer]] = {name: [] for name in entrants}
        self.parameters: dict[str, int] = {}
        check_above_zero("seconds", seconds)
        self._arguments = (entrants, check_positive("updates", updates), seconds, check_positive("seeds", seeds))
        self._learning = (check_above_zero("learning_rate", learning_rate), check_positive("batch_size", batch_size))
        self.budget = seconds if equal == "seconds" else float(updates)
        self.background = Background(self._work, watch, "race")

    @property
    def done(self) -> int:
        """The turns that all racers have had, after the first score."""
        return max(0, min((len(one.scores) for racers in self.racers.values() for one in racers), default=0) - 1)

    @property
    def told(self) -> str:
        """How far it is; empty before the first score."""
        return f"turn {self.done} of {self.turns}" if self.parameters else ""

    def _work(self, background: Background) -> None:
        probe = next(iter(loader(self.task, "validation", PROBE)))
        self._line_up(probe)
        for turn in range(self.turns + 1):
            for racers in self.racers.values():
                for racer in racers:
                    racer.advance(background, self.budget * turn / self.turns)
                    racer.spent.append(racer.now)
                    racer.scores.append(_score(self.task, racer.model, probe))

    def band(self, name: str) -> tuple[list[float], list[float], list[float], list[float]]:
        """Of the turns that all seeds of a model have had: what was spent, and the lowest, median and highest score."""
        racers = self.racers[name]
        done = min((len(racer.scores) for racer in racers), default=0)
        columns = [[racer.scores[i] for racer in racers] for i in range(done)]
        spent = [median(racer.spent[i] for racer in racers) for i in range(done)]
        return spent, *([f(column) for column in columns] for f in (min, median, max))  # type: ignore[return-value]

    def spent_to(self, name: str, target: float, turn: int) -> float | None:
        """What the median seed had spent when it was first as good as that; None if it was not up to a turn."""
        spent, _, middle, _ = (column[: turn + 1] for column in self.band(name))
        good = [s <= target if self.task.best == "min" else s >= target for s in middle]
        return next((x for x, reached in zip(spent, good, strict=True) if reached), None)

    def _line_up(self, probe: Batch) -> None:
        entrants, updates, _, seeds = self._arguments
        rate, batch = self._learning
        made = {name: dict(arguments) for name, arguments in entrants.items()}
        if self.equal == "parameters":
            goal = count(self.task, next(iter(made.values())))
            made = {name: matched(self.task, arguments, goal) for name, arguments in made.items()}
        steps, costs = probe.inputs.shape[1], {name: 1.0 for name in made}
        if self.equal == "multiply-adds":
            costs = {name: batch * multiply_adds(self.task, steps=steps, **a) / 1e9 for name, a in made.items()}
            self.budget = updates * next(iter(costs.values()))
        for name, arguments in made.items():
            self.parameters[name] = count(self.task, arguments)
            per_update = None if self.equal == "seconds" else costs[name]
            for seed in range(seeds):
                with seeded(seed):
                    model = build(self.task, **arguments)
                self.racers[name].append(Racer(model, learn(self.task, model, rate, batch, seed=seed), per_update))


def count(task: Task, arguments: Mapping[str, Any]) -> int:
    """The parameters of a model, embeddings and head included."""
    with torch.device("meta"):  # no memory, whatever the size
        return sum(p.numel() for p in build(task, **arguments).parameters())


def matched(task: Task, arguments: Mapping[str, Any], goal: int) -> dict[str, Any]:
    """The arguments with that `d_model` for which the model has nearest to `goal` parameters.

    Raises:
        ValueError: if the model has no `d_model`, or none up to 4,096 makes it as large as `goal`.
    """
    if "d_model" not in arguments:
        raise ValueError(f"entrants: expected a d_model to change, got {sorted(arguments)}")
    # a width that every head divides, if there are any, and that sinusoids halve
    apart = 2 * max(1, arguments.get("heads", 1))
    low, high = 1, ceil(4096 / apart)

    def size(width: int) -> int:
        return count(task, {**arguments, "d_model": width * apart})

    if size(high) < goal:
        raise ValueError(
            f"entrants: {arguments['model']} has fewer than {goal:,} parameters up to d_model {high * apart}"
        )
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if size(middle) < goal else (low, middle)
    best = min((low - 1, low), key=lambda width: abs(size(width) - goal) if width else goal + 1)
    return {**arguments, "d_model": best * apart}


@torch.no_grad()
def _score(task: Task, model: nn.Module, batch: Batch) -> float:
    with evaluating(model):
        return task.score(task.predict(model, batch), batch)
