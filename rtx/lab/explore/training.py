"""The training lab: choose a task, a model and its hyper-parameters, and watch it learn beside the notebook."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rtx.lab.choice import Choice, offered, rows, usual
from rtx.lab.explore.live import Live, Recorded
from rtx.lab.explore.page import packed
from rtx.lab.explore.recording import Control, Panel, Seen
from rtx.lab.look import Look
from rtx.lab.training_run import TrainingRun
from rtx.nn.validate import check_choice

POINTS, MOMENTS = 100, 40  # of a curve, and of the slider, at most
WHAT = "update; dots: validation, line: a batch of it"
TRY = "move the update: when does it learn most? In JupyterLab, change one number and train again: which run is better?"


def training(task: str = "digits", model: str = "", **changes: Any) -> Live:
    """Start, pause, resume and stop the training of a recipe's row; the kernel stays free. Runs are kept side by side.

    Args:
        task: one of `rtx.lab.choice.offered`, at first.
        model: a row of its recipe, at first; the first one if not given.
        changes: the seed, and settings or arguments of the model that differ from the recipe's, at first.

    Raises:
        ValueError: if there is no such task, row or setting.
    """
    state = {"task": task} | ({"model": model} if model else {})
    lab = Live("training", "Training lab", TRY, _make, _form, _recorded, **state)
    lab.set(**changes)
    lab.start = lab.state
    return lab


def _form(state: Mapping[str, Any]) -> dict[str, Any]:
    """Task, model, and what the recipe gives the chosen row: the first, if the state has none of the task's."""
    recipe, scale = offered()[check_choice("task", state["task"], offered())]
    names = rows(recipe, scale)
    row = state["model"] if state.get("model") in names else names[0]
    return {"task": list(offered()), "model": names, **usual(recipe, row, scale)}


def _make(task: str, model: str, seed: int, **settings: Any) -> TrainingRun:
    recipe, scale = offered()[task]
    usually = usual(recipe, model, scale)
    changed = {name: value for name, value in settings.items() if value != usually[name]}
    return TrainingRun(Choice(recipe, model, scale, changed, seed))


def _recorded(runs: dict[str, TrainingRun]) -> Recorded:
    """The curves of all runs, and the looks into one of them."""
    names, several = list(runs), list(runs.values())
    losses = [_points(enumerate(run.losses, 1)) for run in several]
    scores = [_points(run.probes) for run in several] + [_points(run.validations) for run in several]
    metric = several[-1].task.metric if several[-1].task else "score"
    curves = [
        Panel("lines", losses, "loss of a batch", "update", names=names, sets="update"),
        Panel("lines", scores, metric, WHAT, names=[*names, *names], sets="update"),
    ]
    looks = {name: _looks(run, whole=run is several[-1]) for name, run in runs.items()}  # all would be too many

    def see(run: str, update: int) -> Seen:
        before = [look for at, look in looks[run] if at <= update] or [look for _, look in looks[run][:1]]
        return f"Run {run}. {runs[run].told_at(update)}", [*curves, *before[-1:]]

    ends = {len(run.losses) for run in several}
    moments = sorted({*range(0, max(ends) + 1, max(ends) // MOMENTS + 1), *ends})
    return {"update": Control("update", moments, seconds=4)}, see


def _points(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """A curve of at most 100 points: of a long one the means of neighbours, each at its last update."""
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    size = math.ceil(len(finite) / POINTS) or 1
    groups = [finite[i : i + size] for i in range(0, len(finite), size)]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def _looks(run: TrainingRun, whole: bool) -> list[tuple[int, Panel]]:
    """Looks as heat maps, all or only the last one, with the same range of colours."""
    looks = run.looks if whole else run.looks[-1:]
    ends = [float(end) for _, look in looks for end in look.values.aminmax()]
    high, signed = max(map(abs, ends), default=1.0), min(ends, default=0.0) < 0
    y = (-high if signed else 0.0, high)

    def panel(at: int, seen: Look) -> Panel:
        across = f"{seen.x}, after {at:,} updates"
        return Panel("heat", packed(seen.values), seen.title, across, seen.y, y=y, diverging=signed)

    return [(at, panel(at, seen)) for at, seen in looks]
