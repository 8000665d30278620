"""The race: several models learn live under the same parameters, multiply-adds or seconds, with bands over seeds."""

from typing import Any

from rtx.lab.contest import EQUAL, Contest, Entrants
from rtx.lab.explore.live import NOTHING, Live, Recorded, field
from rtx.lab.explore.recording import Control, Panel, Values, content
from rtx.tasks.registry import task_by_name
from rtx.tasks.task import Task

ENTRANTS: Entrants = {
    "R-Transformer": {"model": "r-transformer", "d_model": 24, "layers": 1, "heads": 2, "window": 7},
    "Transformer": {"model": "transformer", "d_model": 32, "layers": 2, "heads": 2},
    "GRU": {"model": "gru", "d_model": 32, "layers": 1},
}
"""What races if nothing else is given: small models, none of them tuned."""
TRY = "train under equal seconds, then under equal parameters: is the winner the same? And for a harder target?"


class Race(Live):
    """Time to accuracy, live: what is `equal` is set before a training; `target` and `turn` move through its recording.

    Args:
        task: a name or a `Task`, not one of pairs.
        entrants: name → the arguments of `rtx.build`.
        equal: "parameters", "multiply-adds" or "seconds", at first.
        how: `Contest`'s `updates`, `seconds`, `seeds`, `turns`, `learning_rate` and `batch_size`.

    Raises:
        ValueError: if there is no such task, no entrant, or an argument is out of its range.
    """

    def __init__(
        self, task: str | Task = "digits", entrants: Entrants = ENTRANTS, equal: str = "seconds", **how: Any
    ) -> None:
        self.task = task_by_name(task) if isinstance(task, str) else task
        self.entrants, self.how, self.targets = entrants, how, _targets(self.task)
        Contest(self.task, entrants, equal, **how)  # a wrong argument is refused now, not at the first training
        view = {"run": "", "target": self.targets[len(self.targets) // 4], "turn": -1}
        super().__init__("race", "A race on equal terms", TRY, view, equal=equal)

    def make(self) -> Contest:
        """The contest under what is equal now."""
        return Contest(self.task, self.entrants, self.state["equal"], **self.how, watch=self.show)

    def form(self) -> list[dict[str, Any]]:
        """What is equal."""
        return [field("equal", "seconds", list(EQUAL))]

    def recorded(self) -> Recorded:
        """The curves of each contest up to each turn."""
        runs = {f"{i}: equal {contest.equal}": contest for i, contest in enumerate(self.runs, 1)}
        turns = max((contest.done for contest in self.runs), default=0)
        bands = {(run, turn): _bands(contest, turn) for run, contest in runs.items() for turn in range(turns + 1)}

        def see(run: str, target: float, turn: int) -> Values:
            if run not in runs:
                return NOTHING, {"scores": [[] for _ in self.entrants]}
            return _sentence(runs[run], target, turn), {"scores": bands[run, turn]}

        title = f"{self.task.metric}: median, range of seeds"
        panels = {"scores": Panel("lines", title, "spent", names=list(self.entrants), level="target")}
        controls = {
            "run": Control("race", list(runs) or [""]),
            "target": Control("target", self.targets),
            "turn": Control("turn", range(turns + 1), seconds=4),
        }
        return controls, panels, see


race = Race


def _targets(task: Task) -> list[float]:
    """Scores on the way from the baseline to perfection."""
    baseline = task.baseline() if task.baseline is not None else 0.0
    perfect = 0.0 if task.best == "min" else 100.0 if "%" in task.metric else 1.0
    return [float(f"{baseline + (perfect - baseline) * k / 20:.3g}") for k in range(1, 20)]


def _bands(contest: Contest, turn: int) -> dict[str, Any]:
    """Points of spent, median, lowest and highest score, of each model up to a turn."""
    lines = [contest.points(name) for name in contest.racers]
    furthest = max([contest.budget, *(spent for line in lines for spent, *_ in line)])
    return content([line[: turn + 1] for line in lines], across=EQUAL[contest.equal], x=(0, furthest))


def _sentence(contest: Contest, target: float, turn: int) -> str:
    parts = []
    for name, size in list(contest.parameters.items()):
        spent = contest.spent_to(name, target, turn)
        when = "not yet" if spent is None else f"at {spent:,.0f}" if spent >= 1000 else f"at {spent:.3g}"
        parts.append(f"{name} ({size:,} parameters) {when}")
    return f"{EQUAL[contest.equal].capitalize()} until {contest.task.metric} {target:g}: {'; '.join(parts)}."
