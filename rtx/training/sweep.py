"""Choose settings by validation: a grid of runs that several processes and machines take from one file.

The storage is Optuna's journal, which needs no server. The test split is never read here.
"""

import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import JournalStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from rtx.tasks import task_by_name
from rtx.training.alone import alone_in, is_held
from rtx.training.clock import countdown
from rtx.training.fit import fit, has_checkpoint, run_folder
from rtx.training.journal import Journal, lock_of
from rtx.training.recipe import Plan, Recipe, as_typed_together
from rtx.training.signs import alive, is_dead, write_sign
from rtx.training.states import CannotGoOn, Exploded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)
DATA = "data_sha256"  # the study's attribute


@dataclass(frozen=True)
class Sweep:
    """A grid of runs of one row of a recipe.

    Args:
        recipe, row, variant, scale, seed, epochs, precision: as in `rtx.evidence.record.train`; the same for all runs.
        values: what to choose from, by setting or hyper-parameter.
        runs: folder of all runs; machines that share it share the sweep.

    Raises:
        ValueError: if there is nothing to choose from, or a run of the grid cannot be: an unknown key, a bad value.
    """

    recipe: Recipe
    row: str
    values: dict[str, list[Any]]
    variant: str | None = None
    scale: str = "full"
    seed: int = 0
    epochs: int | None = None
    runs: Path = Path("runs")
    precision: str = "32-true"

    def __post_init__(self) -> None:
        if not self.values or not all(self.values.values()):
            raise ValueError(f"sweep: recipe {self.recipe.name} names no values to choose from; --set key=a,b does")
        for point in self.grid:
            self.plan(point)

    @property
    def grid(self) -> list[dict[str, Any]]:
        """Every combination, the last key's values changing fastest."""
        return [dict(zip(self.values, choice, strict=True)) for choice in product(*self.values.values())]

    @property
    def folder(self) -> Path:
        """Where the storage and the plot are."""
        base = run_folder(self.plan({}), self.seed, self.runs)
        return base.with_name(f"sweep-{base.name}")

    def plan(self, point: dict[str, Any]) -> Plan:
        """The run at a point of the grid."""
        return self.recipe.plan(self.row, self.variant, point, self.scale)

    def study(self) -> optuna.Study:
        """Optuna's record of the runs; another grid has another in the same file."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder.mkdir(parents=True, exist_ok=True)
        storage = JournalStorage(Journal(self.folder / "journal.log"))
        best = task_by_name(self.plan({}).task).best
        direction = StudyDirection.MINIMIZE if best == "min" else StudyDirection.MAXIMIZE
        precision = {"precision": self.precision} if self.precision != "32-true" else {}
        name = json.dumps({"values": self.values, "epochs": self.epochs} | precision)
        return optuna.create_study(storage=storage, study_name=name, direction=direction, load_if_exists=True)

    def run(self, max_seconds: float | None = None, **training: Any) -> optuna.Study:
        """Take run after run from the grid, until all are done or taken by others; see `fit` for the arguments.

        A run that died is taken again, and goes on from its last checkpoint. One whose loss exploded, or whose
        validation is NaN, has failed.

        Args:
            max_seconds: after so long, all runs together, save and stop.
            training: as of `fit`.

        Raises:
            Stopped: if asked to, or the time is over; the run it came in is taken up by the next process that sweeps.
            CannotGoOn: if earlier runs had other data, one was begun in another way, or another process has it.
            ValueError: if a run cannot be made for another reason than itself, such as data that are not there.
        """
        study, left = self.study(), countdown(max_seconds)
        self._keep_data(study)
        while claimed := self._claim(study):
            trial, point = claimed
            plan = self.plan(point)
            folder = self._folder_of(point)
            with alive(self._sign(trial.number)):
                try:
                    with alone_in(folder):
                        training |= {"precision": self.precision, "max_seconds": left()}
                        done = fit(plan, self.seed, folder, self.epochs, has_checkpoint(folder), **training)
                    if math.isnan(done.validation):  # Optuna takes no such value, and the run would be taken again
                        raise Exploded(f"validation: became nan in {folder}, expected a number")
                except Exploded as error:
                    record(study, trial, None, error=str(error))
                    log.warning("%s: %s", plan.variant, error)
                except ValueError:  # of the data, the machine, the checkpoint: it can be taken again
                    study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
                    raise
                else:
                    record(study, trial, done.validation, epoch=done.epoch)
        return study

    def _keep_data(self, study: optuna.Study) -> None:
        """Scores are compared on the same data only: a text file may have changed since the runs before."""
        plan = self.plan(self.grid[0])
        data = task_by_name(plan.task, **plan.task_arguments).sha256()
        with self._turn():  # else of two that begin at once each would find none
            before = study.user_attrs.get(DATA, data)  # an older sweep does not say
            if data != before:
                raise CannotGoOn(f"runs: expected the data of the sweep in {self.folder}, {before}, got others, {data}")
            study.set_user_attr(DATA, data)

    def _sign(self, number: int) -> Path:
        return self.folder / f"alive-{number}"

    def _folder_of(self, point: dict[str, Any]) -> Path:
        return run_folder(self.plan(point), self.seed, self.runs)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """What one process does at a time."""
        lock = lock_of(self.folder / "claim")
        lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _is_given_up(self, run: FrozenTrial) -> bool:
        """Whether nobody is at it: who is only silent, as when halted by Ctrl-Z, still holds its folder."""
        if not is_dead(self._sign(run.number)):
            return False
        return run.params not in self.grid or not is_held(self._folder_of(run.params))

    def _claim(self, study: optuna.Study) -> tuple[optuna.Trial, dict[str, Any]] | None:
        """The next run of the grid that nobody has: two processes must not both find it."""
        with self._turn():
            for running in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if self._is_given_up(running):  # so is one that has ended since the list was read: it stays
                    study.tell(running.number, state=TrialState.FAIL, skip_if_finished=True)
            trials = study.get_trials(deepcopy=False)
            taken = [t.params for t in trials if t.state is not TrialState.FAIL or "error" in t.user_attrs]
            left = [point for point in self.grid if point not in taken]
            if not left:
                return None
            if not study.get_trials(states=(TrialState.WAITING,)):  # one that a process left which died before it asked
                study.enqueue_trial(left[0])
            trial = study.ask()
            for key, values in self.values.items():
                trial.suggest_categorical(key, values)
            write_sign(self._sign(trial.number))
            return trial, dict(trial.params)


def record(study: optuna.Study, trial: optuna.Trial, validation: float | None, **notes: Any) -> None:
    """Record how a run ended, None for one that failed by itself, with notes on it.

    If another process has taken it for dead meanwhile, as after a sleep of the machine, nothing is recorded: the run
    is still to be taken, and then goes on from its end.
    """
    try:
        for key, note in notes.items():
            trial.set_user_attr(key, note)
    except UpdateFinishedTrialError:
        log.warning("run %s of the sweep was taken for dead by another process, and is taken again", trial.number)
        return
    study.tell(trial, validation, TrialState.FAIL if validation is None else TrialState.COMPLETE)


def settled(study: optuna.Study, grid: list[dict[str, Any]]) -> bool:
    """Whether every run of the grid came to its end, or failed by itself."""
    ended = [t.params for t in study.get_trials() if t.state is TrialState.COMPLETE or "error" in t.user_attrs]
    return all(point in ended for point in grid)


def tried(study: optuna.Study) -> dict[str, float | None]:
    """Each combination that came to its end, or failed by itself, as it is typed, with its validation or None."""
    ended = [t for t in study.get_trials() if t.state is TrialState.COMPLETE or "error" in t.user_attrs]
    finite = {t.number: t.value for t in ended if t.value is not None and math.isfinite(t.value)}
    return {as_typed_together(t.params): finite.get(t.number) for t in ended}


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The runs that came to their end, the best first; of equally good ones, the one that was so after fewer epochs."""
    sign = -1 if study.direction is StudyDirection.MAXIMIZE else 1
    done = study.get_trials(states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda t: (sign * (t.value or 0.0), t.user_attrs["epoch"]))


def plot(study: optuna.Study, path: Path, metric: str) -> "Figure":
    """Draw every run's validation over each of what was chosen; the best is filled. The figure is saved, too."""
    from matplotlib.figure import Figure

    done = finished(study)
    keys = list(done[0].params)
    figure = Figure(figsize=(3.2 * len(keys), 3), layout="constrained")
    for key, axes in zip(keys, figure.subplots(1, len(keys), squeeze=False, sharey=True)[0], strict=True):
        names = sorted({trial.params[key] for trial in done}, key=lambda v: (str(type(v)), v))
        for place, trial in enumerate(done):
            at = names.index(trial.params[key])
            axes.plot(at, trial.value, "o", color="C0", fillstyle="none" if place else "full")
        axes.set_xticks(range(len(names)), [str(name) for name in names])
        axes.set_xlabel(key)
    figure.axes[0].set_ylabel(f"validation, {metric}")
    figure.savefig(path, dpi=150)
    return figure
