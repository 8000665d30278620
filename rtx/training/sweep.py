"""Choose settings by validation: a grid of runs that processes and machines share. No model is tested."""

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from rtx.tasks import Task, build, task_by_name
from rtx.training.fit import fit, has_checkpoint, run_folder
from rtx.training.lock import lock_folder
from rtx.training.recipe import Plan, Recipe, as_typed_together
from rtx.training.study import Direction, Point, SharedStudy
from rtx.training.timing import countdown


@dataclass(frozen=True)
class Sweep:
    """A grid of runs of one row of a recipe. Fields that are not explained are those of `rtx.evidence.record.train`."""

    recipe: Recipe
    row: str
    values: dict[str, list[Any]]  # what to choose from, by setting or hyper-parameter
    variant: str | None = None
    scale: str = "full"
    seed: int = 0
    epochs: int | None = None
    runs: Path = Path("runs")  # the folder of all runs; processes that use the same folder share the sweep
    precision: str = "32-true"
    storage: str | None = None  # address of a PostgreSQL database, by which machines share the sweep

    def __post_init__(self) -> None:
        if not self.values or not all(self.values.values()):
            raise ValueError(f"sweep: recipe {self.recipe.name} names no values to choose from; --set key=a,b does")

    @property
    def grid(self) -> list[Point]:
        """Every combination, the last key's values changing fastest."""
        return [dict(zip(self.values, choice, strict=True)) for choice in product(*self.values.values())]

    @property
    def folder(self) -> Path:
        """Where the database is."""
        base = run_folder(self.plan({}), self.seed, self.runs)
        return base.with_name(f"sweep-{base.name}")

    @property
    def task(self) -> Task:
        """What the runs learn."""
        plan = self.plan({})
        return task_by_name(plan.task, **plan.task_arguments)

    def plan(self, point: Point) -> Plan:
        """The run at a point of the grid."""
        return self.recipe.plan(self.row, self.variant, point, self.scale)

    def open(self) -> SharedStudy:
        """Optuna's record of the runs. Another grid, plan or data have another study in the same database."""
        task, plan = self.task, self.plan({})
        how = [asdict(plan.settings), plan.hyperparameters, plan.task_arguments]
        plans = [self.plan({"path": path}) for path in self.values.get("path", [])]  # files, whose text may change
        texts = [task_by_name(plan.task, **plan.task_arguments).sha256() for plan in plans]
        what = json.dumps([self.values, self.epochs, self.precision, task.sha256(), *texts, *how], default=str)
        name = f"{self.recipe.name}/{self.folder.name}/{hashlib.sha256(what.encode()).hexdigest()[:12]}"
        direction: Direction = "maximize" if task.best == "max" else "minimize"
        return SharedStudy(self.folder / "sweep.db", self.storage, name, self.values, direction)

    def left(self, study: optuna.Study) -> list[Point]:
        """The points that have no result yet."""
        results = [trial.params for trial in ended(study)]
        return [point for point in self.grid if point not in results]

    def run(self, max_seconds: float | None = None, **training: Any) -> optuna.Study:
        """Train run after run of the grid, until all have ended or other processes have the rest.

        A run whose process died is taken again, and goes on from its last checkpoint. A run whose loss exploded has
        failed. An impossible combination is pruned. The attribute "error" of both says why.

        Args:
            max_seconds: save and stop after so many seconds, all runs together.
            training: as of `fit`.
        """
        shared, seconds = self.open(), countdown(max_seconds)

        def train(point: Point) -> tuple[float, dict[str, Any]]:
            try:
                plan = self.plan(point)
                build(task_by_name(plan.task, **plan.task_arguments), plan.model, **plan.hyperparameters)
            except ValueError as error:
                raise optuna.TrialPruned(str(error)) from error
            folder = run_folder(plan, self.seed, self.runs)
            how = training | {"precision": self.precision, "max_seconds": seconds()}
            if tell := training.get("tell"):  # the variant's name lacks the values that the recipe has anyway
                how["tell"] = lambda kind, facts: tell(kind, facts | {"variant": as_typed_together(point)})
            with lock_folder(folder):
                done = fit(plan, self.seed, folder, self.epochs, has_checkpoint(folder), **how)
            return done.validation, {"epoch": done.epoch}

        shared.run(lambda: self.left(shared.study), train)
        return shared.study


def ended(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that have a result: a score, or the reason why there is none."""
    return [trial for trial in study.get_trials() if trial.state is TrialState.COMPLETE or "error" in trial.user_attrs]


def tried(study: optuna.Study) -> dict[str, float | None]:
    """Each combination that has a result, as it is typed, with its validation. None if it failed or is impossible."""
    return {as_typed_together(t.params): t.value for t in ended(study)}


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The runs that came to their end, the best first. Of equally good runs, the one with fewer epochs is first."""
    sign = -1 if study.direction.name == "MAXIMIZE" else 1
    done = study.get_trials(states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda t: (sign * (t.value or 0.0), t.user_attrs["epoch"]))
