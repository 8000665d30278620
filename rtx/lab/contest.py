"""Several models learn one task in turns, under equal conditions: who comes how far, and when."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
        self.task, self.entrants, self.equal = task, entrants, equal
        self.turns, self.seeds = check_positive("turns", turns), check_positive("seeds", seeds)
        self.learning_rate = check_above_zero("learning_rate", learning_rate)
        self.batch_size, self.updates = check_positive("batch_size", batch_size), check_positive("updates", updates)
        check_above_zero("seconds", seconds)
        self.budget = seconds if equal == "seconds" else float(updates)
        self.racers: dict[str, list[Racer]] = {name: [] for name in entrants}
        self.parameters: dict[str, int] = {}
        self.background = Background(self._work, watch, "race")

    @property
    def done(self) -> int:
        """The turns that all racers have had, after the first score."""
        return max(0, min(len(self.points(name)) for name in self.entrants) - 1)

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

    def points(self, name: str) -> list[tuple[float, ...]]:
        """Of each turn that all seeds of a model have had: what was spent, and the median, lowest and highest score."""
        turns = zip(*(zip(racer.spent, racer.scores, strict=False) for racer in self.racers[name]), strict=False)
        columns = ([list(column) for column in zip(*turn, strict=True)] for turn in turns)
        return [(median(spent), median(scores), min(scores), max(scores)) for spent, scores in columns]

    def spent_to(self, name: str, target: float, turn: int) -> float | None:
        """What the median seed had spent when it was first as good as that; None if it was not up to a turn."""
        sign = -1 if self.task.best == "min" else 1
        reached = (x for x, score, *_ in self.points(name)[: turn + 1] if sign * score >= sign * target)
        return next(reached, None)

    def _line_up(self, probe: Batch) -> None:
        made = {name: dict(arguments) for name, arguments in self.entrants.items()}
        if self.equal == "parameters":
            goal = count(self.task, next(iter(made.values())))
            made = {name: matched(self.task, arguments, goal) for name, arguments in made.items()}
        steps, costs = probe.inputs.shape[1], {name: 1.0 for name in made}
        if self.equal == "multiply-adds":
            batch = self.batch_size / 1e9
            costs = {name: batch * multiply_adds(self.task, steps=steps, **one) for name, one in made.items()}
            self.budget = self.updates * next(iter(costs.values()))
        for name, arguments in made.items():
            self.parameters[name] = count(self.task, arguments)
            per_update = None if self.equal == "seconds" else costs[name]
            for seed in range(self.seeds):
                with seeded(seed):
                    model = build(self.task, **arguments)
                learning = learn(self.task, model, self.learning_rate, self.batch_size, seed=seed)
                self.racers[name].append(Racer(model, learning, per_update))


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
    apart = 2 * max(1, arguments.get("heads", 1))  # a width that every head divides, and that sinusoids halve
    widths = range(apart, 4097, apart)

    def size(width: int) -> int:
        return count(task, {**arguments, "d_model": width})

    place = bisect_left(widths, goal, key=size)
    if place == len(widths):
        raise ValueError(f"entrants: {arguments['model']} has fewer than {goal:,} parameters at d_model {widths[-1]}")
    best = min(widths[max(0, place - 1) : place + 1], key=lambda width: abs(size(width) - goal))
    return {**arguments, "d_model": best}


@torch.no_grad()
def _score(task: Task, model: nn.Module, batch: Batch) -> float:
    with evaluating(model):
        return task.score(task.predict(model, batch), batch)
