"""The training lab: choose a task, a model and its hyper-parameters, and watch it learn beside the notebook."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rtx.lab.choice import Choice, offered, rows, usual
from rtx.lab.explore.live import NOTHING, Live, Recorded, field
from rtx.lab.explore.page import packed
from rtx.lab.explore.recording import Control, Panel, Values, content
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
        changes: the seed, and settings or arguments of the model that differ from the recipe's, at first.

    Raises:
        ValueError: if there is no such task, row or setting.
    """

    def __init__(self, task: str = "digits", model: str = "", **changes: Any) -> None:
        check_choice("task", task, offered())
        view = {"run": "", "update": -1}
        super().__init__("training", "Training lab", TRY, view, task=task, model=model, changes=changes)

    @property
    def choice(self) -> Choice:
        """What the form says."""
        changes = {"seed": 0, **self.state["changes"]}
        return Choice(*_row(self.state), seed=changes.pop("seed"), overrides=changes)

    def set(self, **values: Any) -> str:
        """Move controls from code, hyper-parameters too. Another task or model begins with its recipe's values.

        Raises:
            ValueError: if there is no control of a name, or no such task or model.
        """
        own = {name: value for name, value in values.items() if name in self.state}
        changes = {} if "task" in own or "model" in own else self.state["changes"]
        return super().set(**own, changes=changes | {name: values[name] for name in values if name not in own})

    def form(self) -> list[dict[str, Any]]:
        """Task, model, and what the recipe gives the chosen row."""
        recipe, row, scale = _row(self.state)
        menus = [field("task", "digits", list(offered())), field("model", row, rows(recipe, scale))]
        return [*menus, *(field(name, value) for name, value in usual(recipe, row, scale).items())]

    def make(self) -> TrainingRun:
        """The run of the form's settings."""
        return TrainingRun(self.choice, self.show, self.name)

    def recorded(self) -> Recorded:
        """The curves of all runs of the newest one's recipe, and the looks into one of them."""
        runs = self._same()
        names = [f"{i}: {run.choice.row}" for i, run in enumerate(runs, 1)]
        losses = [_points(enumerate(run.losses, 1)) for run in runs]
        scores = [_points(points) for points in ([run.probes for run in runs] + [run.validations for run in runs])]
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
        ends = {len(run.losses) for run in runs}
        moments = sorted({*range(0, max(ends, default=0) + 1, max(ends, default=0) // MOMENTS + 1), *ends})
        return {"run": Control("run", names or [""]), "update": Control("update", moments, seconds=4)}, panels, see

    def table(self) -> list[dict[str, Any]]:
        """A row for each run, with its command, its code and its log."""
        return [_facts(run) for run in self._same()]

    def _same(self) -> list[TrainingRun]:
        return [run for run in self.runs if run.choice.recipe == self.runs[-1].choice.recipe]

    def _check(self, state: dict[str, Any]) -> None:
        recipe, row, scale = _row(self.state | state)
        check_choice("model", state.get("model") or row, rows(recipe, scale))
        for name in state["changes"]:
            check_choice("setting", name, usual(recipe, row, scale))


training = TrainingLab


def _row(state: dict[str, Any]) -> tuple[str, str, str]:
    """Recipe, row and scale of what a state names: the recipe's first row, if the state has none of its rows."""
    recipe, scale = offered()[check_choice("task", state["task"], offered())]
    names = rows(recipe, scale)
    return recipe, state["model"] if state["model"] in names else names[0], scale


def _facts(run: TrainingRun) -> dict[str, Any]:
    choice = run.choice
    changed = ", ".join(f"{key} {value}" for key, value in choice.overrides.items()) or "as the recipe has it"
    scores = [score for _, score in run.validations]
    best = max if run.task and run.task.best == "max" else min
    return {
        "model": choice.row,
        "settings": f"{changed}, seed {choice.seed}",
        "parameters": f"{sum(p.numel() for p in run.model.parameters()) if run.model else 0:,}",
        "updates": f"{len(run.losses):,}",
        "best": f"{best(scores):.3f}" if scores else "-",
        "more": "\n".join([choice.command(), "", choice.code(), *run.log()]),
    }


def _points(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """A curve of at most 100 points: of a long one the means of neighbours, each at its last update."""
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    size = math.ceil(len(finite) / POINTS) or 1
    groups = [finite[i : i + size] for i in range(0, len(finite), size)]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def _tables(looks: Sequence[tuple[int, Look]]) -> list[tuple[int, dict[str, Any]]]:
    """Looks as content of a heat map, all with the same range of colours."""
    ends = [float(end) for _, look in looks for end in look.values.aminmax()]
    how = {"y": (min([0.0, *ends]), max(ends, default=1.0))}
    return [(at, content(packed(v), title=title, across=x, up=y, **how)) for at, (v, x, y, title) in looks]
