"""The race: several models learn live under the same parameters, multiply-adds or seconds, with bands over seeds."""

from functools import partial
from typing import Any

from rtx.lab.contest import EQUAL, Contest, Entrants
from rtx.lab.explore.live import Live, Recorded
from rtx.lab.explore.recording import Control, Panel, Seen
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Task

ENTRANTS: Entrants = {
    "R-Transformer": {"model": "r-transformer", "d_model": 24, "layers": 1, "heads": 2, "window": 7},
    "Transformer": {"model": "transformer", "d_model": 32, "layers": 2, "heads": 2},
    "GRU": {"model": "gru", "d_model": 32, "layers": 1},
}
"""What races if nothing else is given: small models, none of them tuned."""
EASY = 5  # the target at first: a tenth of the way from the baseline to perfection
TRY = "move the target: which model is there first? In JupyterLab, train under equal parameters: is it the same model?"


def race(task: str | Task = "digits", entrants: Entrants = ENTRANTS, equal: str = "seconds", **how: Any) -> Live:
    """Time to accuracy, live: what is `equal` is set before a training; `target` and `turn` move through its recording.

    Args:
        task: a name or a `Task`, not one of pairs.
        entrants: name → the arguments of `rtx.build`.
        equal: "parameters", "multiply-adds" or "seconds", at first.
        how: `Contest`'s `updates`, `seconds`, `seeds`, `turns`, `learning_rate` and `batch_size`.

    Raises:
        ValueError: if there is no such task, no entrant, or an argument is out of its range.
    """
    task = task_by_name(task) if isinstance(task, str) else task
    make, targets = partial(Contest, task, entrants, **how), _targets(task)
    make(equal=equal)  # a wrong argument is refused now, not at the first training

    def recorded(runs: dict[str, Contest]) -> Recorded:
        last = max(contest.done for contest in runs.values())
        turns = range(min(1, last), last + 1)
        reached = [target for target in targets if any(_is_reached(contest, target) for contest in runs.values())]
        bands = {(run, turn): _bands(contest, turn) for run, contest in runs.items() for turn in turns}

        def see(run: str, target: float, turn: int) -> Seen:
            return _sentence(runs[run], target, turn), [bands[run, turn]]

        return {
            "target": Control("target", sorted(reached or targets[:1])),
            "turn": Control("turn", turns, seconds=4),
        }, see

    form, state = {"equal": list(EQUAL)}, {"equal": equal, "target": targets[EASY - 1]}
    return Live("race", "A race on equal terms", TRY, make, lambda _: form, recorded, time="turn", **state)


def _targets(task: Task) -> list[float]:
    """Scores on the way from the baseline to perfection."""
    baseline = task.baseline() if task.baseline is not None else 0.0
    perfect = 0.0 if task.best == "min" else 100.0 if "%" in task.metric else 1.0
    return [float(f"{baseline + (perfect - baseline) * k / 50:.3g}") for k in range(1, 50)]


def _is_reached(contest: Contest, target: float) -> bool:
    return any(contest.spent_to(name, target, contest.done) is not None for name in contest.curves)


def _bands(contest: Contest, turn: int) -> Panel:
    """Points of spent, median, lowest and highest score, of each model up to a turn."""
    lines = {name: contest.points(name) for name in contest.curves}
    points = [point for line in lines.values() for point in line]
    spent, scores = [point[0] for point in points], [score for _, *three in points for score in three]
    shown, title = [line[: turn + 1] for line in lines.values()], f"{contest.task.metric}: median and range"
    low, high = min(scores, default=0), max(scores, default=1)
    pad = (high - low) / 20  # a line at the end would lie on the axis
    x, y = (0, max([contest.budget, *spent])), (low - pad, high + pad)
    return Panel("lines", shown, title, EQUAL[contest.equal], names=list(lines), x=x, y=y, level="target")


def _sentence(contest: Contest, target: float, turn: int) -> str:
    parts = []
    for name, size in list(contest.parameters.items()):
        spent = contest.spent_to(name, target, turn)
        when = "not yet" if spent is None else f"at {spent:,.0f}" if spent >= 1000 else f"at {spent:.3g}"
        parts.append(f"{name} ({size:,} parameters) {when}")
    return f"{EQUAL[contest.equal].capitalize()} until {contest.task.metric} {target:g}: {'; '.join(parts)}."
