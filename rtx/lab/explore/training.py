"""The training lab: choose a task, a model and its hyper-parameters, and watch it learn beside the notebook."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any

from rtx.lab.choice import Choice, offered, rows
from rtx.lab.explore.live import NOTHING, Live, Recorded, field
from rtx.lab.explore.recording import Controls, Panel, Slide, Values, table
from rtx.lab.look import Look
from rtx.lab.training_run import TrainingRun
from rtx.nn.validate import check_choice

POINTS, MOMENTS = 100, 40  # of a curve, and of the slider, at most
WHAT = "update; dots: validation, line: a batch of it"
TRY = "train one model, change one number, and train again: which of the two is better after as many updates?"


class TrainingLab(Live):
    """Start, pause, resume and stop the training of a recipe's row; the kernel stays free. Runs are kept side by side.

    Args:
        task: one of `rtx.lab.choice.offered`, at first.
        model: a row of its recipe, at first; the first one if not given.
        changes: settings or arguments of the model that differ from the recipe's, at first.

    Raises:
        ValueError: if there is no such task, row or setting.
    """

    def __init__(self, task: str = "digits", model: str | None = None, **changes: Any) -> None:
        start = {"task": task, "model": model or "", "changes": changes}
        _check(start)
        view = {"run": "", "update": -1}
        super().__init__("training", "Training lab", TRY, view, **start, seed=0)

    @property
    def choice(self) -> Choice:
        """What the form says: the recipe's values where they are as it has them."""
        row = _row(self.state)
        usual = _usual(*row)
        changes = {name: float(v) if isinstance(usual[name], float) else v for name, v in self.state["changes"].items()}
        different = {name: value for name, value in changes.items() if value != usual[name]}
        return Choice(*row, different, self.state["seed"])

    def set(self, **values: Any) -> str:
        """Move controls from code, hyper-parameters too. Another task or model begins with its recipe's values.

        Raises:
            ValueError: if there is no control of a name, or no such task or model.
        """
        own = {name: value for name, value in values.items() if name in self.state}
        changes = {name: value for name, value in values.items() if name not in self.state}
        for name in ("model", "task"):
            own = {**(self._fields()[name]["also"] if name in own else {}), **own}
        state = self.state | own
        state["changes"] = {**state["changes"], **changes}
        _check(state)
        self.state = state
        return self.text

    def form(self) -> list[dict[str, Any]]:
        """Task, model, seed, and what the recipe gives the chosen row."""
        return list(self._fields().values())

    def make(self) -> TrainingRun:
        """The run of the form's settings."""
        return TrainingRun(self.choice, self.show, self.name)

    def recorded(self) -> Recorded:
        """The curves of all runs of the newest one's recipe, and the looks into one of them."""
        runs = self._same()
        names = [f"{i}: {run.choice.row}" for i, run in enumerate(runs, 1)]
        losses = [_points(enumerate(run.history.losses, 1)) for run in runs]
        scores = [_points(getattr(run.history, kind)) for kind in ("probes", "validations") for run in runs]
        looks = [_tables(run.looks if run is runs[-1] else run.looks[-1:]) for run in runs]  # all would be too many

        def see(run: str, update: int) -> Values:
            place = names.index(run) if runs else 0
            seen = [look for at, look in looks[place] if at <= update] if runs else []
            sentence = f"Run {run}. {runs[place].told_at(update)}" if runs else NOTHING
            return sentence, {"losses": losses, "scores": scores, "inside": seen[-1] if seen else None}

        metric = runs[-1].task.metric if runs and runs[-1].task else "score"
        panels = {
            "losses": Panel("lines", "loss of a batch", "update", names=names, sets="update"),
            "scores": Panel("lines", metric, WHAT, names=[*names, *names], sets="update"),
            "inside": Panel("heat", "inside the model", share=1.1),
        }
        ends = {len(run.history.losses) for run in runs}
        controls: Controls = {"run": Slide("run", names or [""]), "update": Slide("update", _moments(ends), seconds=4)}
        return controls, panels, see

    def table(self) -> list[dict[str, Any]]:
        """A row for each run, with its command, its code and its log."""
        return [_facts(run) for run in self._same()]

    def _same(self) -> list[TrainingRun]:
        return [run for run in self.runs if run.choice.recipe == self.runs[-1].choice.recipe]

    def _fields(self) -> dict[str, dict[str, Any]]:
        recipe, row, scale = _row(self.state)
        fields = [
            field("task", self.state["task"], list(offered()), model="", changes={}),
            field("model", row, rows(recipe, scale), changes={}),
            field("seed", 0),
            *(field(name, value) for name, value in _usual(recipe, row, scale).items()),
        ]
        return {one["name"]: one for one in fields}


def training(task: str = "digits", model: str | None = None, **changes: Any) -> TrainingLab:
    """The training lab; arguments and errors are those of `TrainingLab`."""
    return TrainingLab(task, model, **changes)


def _row(state: Mapping[str, Any]) -> tuple[str, str, str]:
    """Recipe, row and scale of what a state names; without a model the first row."""
    recipe, scale = offered()[check_choice("task", state["task"], offered())]
    names = rows(recipe, scale)
    return recipe, check_choice("model", state["model"] or names[0], names), scale


@cache
def _usual(recipe: str, row: str, scale: str) -> dict[str, Any]:
    return Choice(recipe, row, scale).usual()


def _check(state: Mapping[str, Any]) -> None:
    usual = _usual(*_row(state))
    for name in state["changes"]:
        check_choice("setting", name, usual)


def _facts(run: TrainingRun) -> dict[str, Any]:
    choice, history = run.choice, run.history
    changed = ", ".join(f"{key} {value}" for key, value in choice.overrides.items()) or "as the recipe has it"
    scores = [score for _, score in history.validations]
    best = max if run.task and run.task.best == "max" else min
    return {
        "model": choice.row,
        "settings": f"{changed}, seed {choice.seed}",
        "parameters": f"{run.parameters:,}",
        "updates": f"{len(history.losses):,}",
        "best": f"{best(scores):.3f}" if scores else "-",
        "more": "\n".join([run.export, *run.log()]),
    }


def _points(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """A curve of at most 100 points: of a long one the means of neighbours, each at its last update."""
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    size = math.ceil(len(finite) / POINTS) or 1
    groups = [finite[i : i + size] for i in range(0, len(finite), size)]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def _tables(looks: Sequence[tuple[int, Look]]) -> list[tuple[int, dict[str, Any]]]:
    """Looks as content of a heat map, their colours alike."""
    values = [number for _, look in looks for number in (float(look.values.min()), float(look.values.max()))]
    colours = (min([0.0, *values]), max(values, default=1.0))
    return [(at, table(look.values, title=look.title, across=look.x, up=look.y, y=colours)) for at, look in looks]


def _moments(ends: set[int]) -> list[int]:
    """The updates that the slider offers: about 40 round ones, and the last one of each run."""
    last = max(ends, default=0)
    step = next(m * 10**k for k in count() for m in (1, 2, 5) if last <= MOMENTS * m * 10**k)
    return sorted({*range(0, last + 1, step), *ends})
