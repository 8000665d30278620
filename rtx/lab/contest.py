"""Several models learn one task in turns, under equal conditions: how far does each come, and when?"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import torch
from torch import nn

from rtx.lab.background import Background
from rtx.lab.learning import learn, score
from rtx.lab.seeded import seeded
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


Curve = list[tuple[float, float]]
"""What one model with one seed had spent at each turn, and its score then."""


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
        check_positive("updates", updates), check_above_zero("seconds", seconds)
        self.turns, self.batch_size = check_positive("turns", turns), check_positive("batch_size", batch_size)
        self.learning_rate = check_above_zero("learning_rate", learning_rate)
        self.budget = seconds if equal == "seconds" else float(updates)
        seeds = check_positive("seeds", seeds)
        self.curves: dict[str, list[Curve]] = {name: [[] for _ in range(seeds)] for name in entrants}
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
        """All turns of all models and seeds."""
        racers = self._line_up(next(iter(loader(self.task, "validation", PROBE))))
        for _ in range(self.turns + 1):
            for curve, racer in racers:
                curve.append(next(racer))

    def points(self, name: str) -> list[tuple[float, ...]]:
        """Of each turn that all seeds of a model have had: what was spent, and the median, lowest and highest score."""
        turns = (zip(*seeds, strict=True) for seeds in zip(*self.curves[name], strict=False))
        return [(median(spent), median(scores), min(scores), max(scores)) for spent, scores in turns]

    def spent_to(self, name: str, target: float, turn: int) -> float | None:
        """What the median seed had spent when it first reached `target`; None if it did not, up to a turn."""
        sign = -1 if self.task.best == "min" else 1
        reached = (x for x, score, *_ in self.points(name)[: turn + 1] if sign * score >= sign * target)
        return next(reached, None)

    def _line_up(self, probe: Batch) -> list[tuple[Curve, Iterator[tuple[float, float]]]]:
        first, steps = next(iter(self.entrants.values())), probe.inputs.shape[1]
        self.budget *= self._cost(first, steps) or 1.0
        racers = []
        for name, given in self.entrants.items():
            arguments = matched(self.task, given, count(self.task, first)) if self.equal == "parameters" else given
            self.parameters[name] = count(self.task, arguments)
            for seed, curve in enumerate(self.curves[name]):
                with seeded(seed):
                    model = build(self.task, **arguments)
                racers.append((curve, self._race(model, seed, self._cost(arguments, steps), probe)))
        return racers

    def _race(self, model: nn.Module, seed: int, cost: float | None, probe: Batch) -> Iterator[tuple[float, float]]:
        """Yield at each turn what was spent, and the score."""
        updates, spent = learn(self.task, model, self.learning_rate, self.batch_size, seed=seed), 0.0
        for turn in range(self.turns + 1):
            while spent < self.budget * turn / self.turns:
                began = time.perf_counter()
                next(updates)
                spent += cost or time.perf_counter() - began
                self.breathe()
            yield spent, score(self.task, model, probe)

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
