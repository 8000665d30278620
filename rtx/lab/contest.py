"""Several models learn one task in turns, under equal conditions: how far does each come, and when?"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
from torch import nn

from rtx.lab.background import Background
from rtx.lab.learning import learn, score
from rtx.lab.seeded import seeded
from rtx.nn.validate import check_choice, check_positive
from rtx.tasks.build import build
from rtx.tasks.costs import multiply_adds
from rtx.tasks.loader import loader
from rtx.tasks.task import Task

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
    """One model with one seed: what it has spent at each turn, and its score then."""

    model: nn.Module
    steps: Iterator[float]
    per_update: float | None
    spent: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    now: float = 0.0


class Contest(Background):
    """Entrants with several seeds each. They take turns, so that a disturbance affects all of them.

    Args:
        task: what they learn; not of pairs.
        entrants: the models. The first one is the measure of the others.
        equal: "parameters": each `d_model` is changed until the model has about as many as the first, and all make
            `updates`. "multiply-adds": all compute as much as the first does in `updates`. "seconds": all learn for
            `seconds`.
        updates, seconds: of each model and seed.
        seeds: how many.
        turns: how often each is scored.
        learning_rate, batch_size: of all.

    Raises:
        ValueError: if there is no entrant, the task is of pairs, or an argument is out of its range.
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
    ) -> None:
        super().__init__()
        if not entrants or task.per == "pair":
            raise ValueError(f"entrants: expected at least one, for a task of no pairs, got {list(entrants)}")
        self.task, self.entrants, self.equal = task, entrants, check_choice("equal", equal, EQUAL)
        self.title = f"equal {equal}"
        self.turns, self.seeds = check_positive("turns", turns), check_positive("seeds", seeds)
        self.learning_rate, self.batch_size = learning_rate, batch_size
        self.budget = seconds if equal == "seconds" else float(updates)
        self.racers: dict[str, list[Racer]] = {name: [] for name in entrants}
        self.parameters: dict[str, int] = {}

    @property
    def done(self) -> int:
        """The turns that all racers have had, after the first score."""
        return max(0, min(len(self.points(name)) for name in self.entrants) - 1)

    @property
    def told(self) -> str:
        """How far it is; empty before the first score."""
        return f"turn {self.done} of {self.turns}" if self.parameters else ""

    def work(self) -> None:
        """All turns of all racers."""
        probe = next(iter(loader(self.task, "validation", PROBE)))
        self._line_up(probe.inputs.shape[1])
        for turn in range(self.turns + 1):
            for racer in [racer for racers in self.racers.values() for racer in racers]:
                while racer.now < self.budget * turn / self.turns:
                    began = time.perf_counter()
                    next(racer.steps)
                    racer.now += racer.per_update or time.perf_counter() - began
                    self.breathe()
                racer.spent.append(racer.now)
                racer.scores.append(score(self.task, racer.model, probe))

    def points(self, name: str) -> list[tuple[float, ...]]:
        """Of each turn that all seeds of a model have had: what was spent, and the median, lowest and highest score."""
        spent = zip(*(racer.spent for racer in self.racers[name]), strict=False)
        scores = zip(*(racer.scores for racer in self.racers[name]), strict=False)
        return [(median(x), median(y), min(y), max(y)) for x, y in zip(spent, scores, strict=False)]

    def spent_to(self, name: str, target: float, turn: int) -> float | None:
        """What the median seed had spent when it first reached `target`; None if it did not, up to a turn."""
        sign = -1 if self.task.best == "min" else 1
        reached = (x for x, score, *_ in self.points(name)[: turn + 1] if sign * score >= sign * target)
        return next(reached, None)

    def _line_up(self, steps: int) -> None:
        first = next(iter(self.entrants.values()))
        self.budget *= self._cost(first, steps) or 1.0
        for name, given in self.entrants.items():
            arguments = matched(self.task, given, count(self.task, first)) if self.equal == "parameters" else given
            self.parameters[name] = count(self.task, arguments)
            for seed in range(self.seeds):
                with seeded(seed):
                    model = build(self.task, **arguments)
                learning = learn(self.task, model, self.learning_rate, self.batch_size, seed=seed)
                self.racers[name].append(Racer(model, learning, self._cost(arguments, steps)))

    def _cost(self, arguments: Mapping[str, Any], steps: int) -> float | None:
        """What an update spends; None if that is its seconds."""
        if self.equal == "multiply-adds":
            return self.batch_size / 1e9 * multiply_adds(self.task, steps=steps, **arguments)
        return 1.0 if self.equal == "parameters" else None


def count(task: Task, arguments: Mapping[str, Any]) -> int:
    """The parameters of a model, embeddings and head included."""
    with torch.device("meta"):  # no memory, whatever the size
        return sum(p.numel() for p in build(task, **arguments).parameters())


def matched(task: Task, arguments: Mapping[str, Any], goal: int) -> dict[str, Any]:
    """The arguments with that `d_model`, up to 4,096, for which the model has nearest to `goal` parameters.

    Raises:
        ValueError: if the model has no `d_model`.
    """
    if "d_model" not in arguments:
        raise ValueError(f"entrants: expected a d_model to change, got {sorted(arguments)}")
    apart = 2 * max(1, arguments.get("heads", 1))  # a width that every head divides, and that sinusoids halve
    widths = range(apart, 4097, apart)

    def size(width: int) -> int:
        return count(task, {**arguments, "d_model": width})

    place = bisect_left(widths, goal, key=size)
    best = min(widths[max(0, place - 1) : place + 1], key=lambda width: abs(size(width) - goal))
    return {**arguments, "d_model": best}
