"""The race: several models learn live under the same parameters, multiply-adds or seconds, with bands over seeds."""

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from rtx.lab.background import Background
from rtx.lab.contest import EQUAL, Contest, Entrants
from rtx.lab.explore.live import LiveExplorer
from rtx.lab.plots import COLOURS, freeze, new_figure
from rtx.nn.validate import check_choice
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Task

ENTRANTS: Entrants = {
    "R-Transformer": {"model": "r-transformer", "d_model": 24, "layers": 1, "heads": 2, "window": 7},
    "Transformer": {"model": "transformer", "d_model": 32, "layers": 2, "heads": 2},
    "GRU": {"model": "gru", "d_model": 32, "layers": 1},
}
"""What races if nothing else is given: small models, none of them tuned."""


def race(
    task: str | Task = "digits", entrants: Entrants = ENTRANTS, equal: str = "seconds", **how: Any
) -> LiveExplorer:
    """Time to accuracy, live, with controls `equal` and `target`.

    Args:
        task: a name or a `Task`, not one of pairs.
        entrants: name → the arguments of `rtx.build`; at most as many as there are colours.
        equal: "parameters", "multiply-adds" or "seconds", at first.
        how: `Contest`'s `updates`, `seconds`, `seeds`, `turns`, `learning_rate` and `batch_size`.

    Raises:
        ValueError: if there is no such task, no entrant or too many, or an argument is out of its range.
    """
    task = task_by_name(task) if isinstance(task, str) else task
    check_choice("equal", equal, EQUAL)
    if not 1 <= len(entrants) <= len(COLOURS):
        raise ValueError(f"entrants: expected one to {len(COLOURS)}, got {len(entrants)}")
    Contest(task, entrants, equal, **how)  # a wrong argument is told now, not in the background
    contests: dict[str, Contest] = {}
    targets = _targets(task)
    picture = _Picture(task, list(entrants))

    def work(watch: Callable[[], None], equal: str, target: float) -> Background:
        contest = contests[equal] = Contest(task, entrants, equal, **how)
        return Background(contest.work, watch, "race")

    def update(equal: str, target: float) -> str:
        picture.show(contests.get(equal), EQUAL[equal], target)
        return _sentence(contests.get(equal), equal, target, task)

    return LiveExplorer(
        picture.figure,
        update,
        work,
        "train under equal seconds, then under equal parameters: is the winner the same? And for a harder target?",
        "race",
        looking=["target"],
        equal=widgets.Dropdown(options=list(EQUAL), value=equal, description="equal"),
        target=widgets.SelectionSlider(options=targets, value=targets[len(targets) // 4], description="target"),
    )


def _targets(task: Task) -> list[float]:
    """Scores on the way from the baseline to perfection."""
    baseline = task.baseline() if task.baseline is not None else 0.0
    perfect = 0.0 if task.best == "min" else 100.0 if "%" in task.metric else 1.0
    return [float(f"{baseline + (perfect - baseline) * k / 20:.3g}") for k in range(1, 20)]


def _sentence(contest: Contest | None, equal: str, target: float, task: Task) -> str:
    if contest is None or not contest.parameters:
        return "Not trained yet: press “train”."
    parts = []
    for name in contest.racers:
        spent = contest.spent_to(name, target)
        when = "not yet" if spent is None else f"at {spent:,.0f}" if spent >= 1000 else f"at {spent:.3g}"
        parts.append(f"{name} ({contest.parameters[name]:,} parameters) {when}")
    return f"{task.metric} {target:g}, in {EQUAL[equal]}: {'; '.join(parts)}."


class _Picture:
    """A line for the median seed of each model, a band from the worst to the best, and the target."""

    def __init__(self, task: Task, names: list[str]) -> None:
        self.task = task
        self.figure, [self.ax] = new_figure(7.2, 3.2)
        for name, colour in zip(names, COLOURS, strict=False):
            self.ax.plot([], [], color=colour, label=name)
        self.lines = list(self.ax.lines)
        self.target = self.ax.axhline(0, color="0.4", linestyle=":", linewidth=1, label="target")
        self.ax.set(
            ylabel=f"{task.metric}, validation", xlabel="spent", title="line: median of the seeds; band: worst to best"
        )
        self.ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        freeze(self.figure)

    def show(self, contest: Contest | None, spent: str, target: float) -> None:
        """The contest as far as it has come."""
        for band in list(self.ax.collections):
            band.remove()
        self.target.set_ydata([target, target])
        self.ax.set_xlabel(spent)
        seen, furthest = [target], 0.0
        for line, name in zip(self.lines, [] if contest is None else contest.racers, strict=False):
            assert contest is not None
            x, low, middle, high = contest.band(name)
            line.set_data(x, middle)
            self.ax.fill_between(x, low, high, color=line.get_color(), alpha=0.3, linewidth=0)
            seen += low + high
            furthest = max([furthest, *x])
        if contest is None:
            for line in self.lines:
                line.set_data([], [])
        room = 0.06 * (max(seen) - min(seen)) or 1.0
        self.ax.set_ylim(min(seen) - room, max(seen) + room)
        self.ax.set_xlim(0, max(contest.budget, furthest) if contest is not None else 1)
