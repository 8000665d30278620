"""An Optuna study that several processes or machines share: each point is run by one of them.

The study is a SQLite file, or it is on a PostgreSQL server. Beside the file, locks show which runs are in progress. A
server has Optuna's heartbeat for that, because its machines may have no folder in common.
"""

import logging
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import optuna
import sqlalchemy
from filelock import FileLock
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.storages._heartbeat import get_heartbeat_thread
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from rtx.training.lock import is_locked, lock_folder
from rtx.training.states import Exploded

log = logging.getLogger(__name__)
HEARTBEAT = 10  # seconds between two heartbeats
GRACE_PERIOD = 60  # seconds without a heartbeat, after which a run counts as dead
Point = dict[str, Any]
Direction = Literal["minimize", "maximize"]


class SharedStudy:
    """An Optuna study, and a lock that lets one process at a time change it.

    Args:
        path: the SQLite file; locks are in the same folder.
        server: address of a PostgreSQL database, to use instead of the file.
        name: of the study; a database may hold several.
        values: the choices of each parameter.
    """

    def __init__(
        self, path: Path, server: str | None, name: str, values: dict[str, list[Any]], direction: Direction = "minimize"
    ) -> None:
        if server is not None and not server.startswith("postgresql://"):
            raise ValueError(f"storage: expected postgresql://user@host/database, got {server!r}")
        self.path, self.server, self.values = path, server, values
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        options: dict[str, Any]
        if server is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            connect = partial(sqlite3.connect, path, timeout=60, check_same_thread=False)
            options = {"creator": connect, "poolclass": sqlalchemy.NullPool}
            url, beat = "sqlite:///", None  # a path in the URL would need escapes
        else:
            utc = {"TimeZone": "UTC"}  # Optuna compares heartbeats without their time zones
            options = {"connect_args": {"startup_params": utc}, "pool_pre_ping": True}
            url, beat = server.replace("://", "+pg8000://", 1), HEARTBEAT
        self._engine = sqlalchemy.create_engine(url, **options)
        with self.alone():
            self._storage = RDBStorage(url, options, heartbeat_interval=beat, grace_period=GRACE_PERIOD)
            self.study = optuna.create_study(
                storage=self._storage, study_name=name, direction=direction, load_if_exists=True
            )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time change the study. SQLite alone would let two processes take the same trial."""
        try:
            with ExitStack() as held, warnings.catch_warnings(action="ignore"):
                if self.server is None:
                    held.enter_context(FileLock(self.path.with_suffix(".lock")))
                else:
                    connection = held.enter_context(self._engine.begin())
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1)")
                yield
        except (SQLAlchemyError, StorageInternalError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise OSError(f"{'storage' if self.server else self.path}: {reason}") from error

    def run(self, points: Callable[[], list[Point]], work: Callable[[Point], tuple[float, dict[str, Any]]]) -> None:
        """Run one point after the other, until no point is left that no other process has.

        `points` returns the points that have no result yet. `work` runs a point, and returns its value and notes on it.
        Its errors `TrialPruned` and `Exploded` are results, too. After any other error the point can be run again.
        """
        while True:
            with ExitStack() as alive:
                with self.alone():
                    self._fail_dead_trials()
                    running = [trial.params for trial in self._trials(TrialState.RUNNING)]
                    free = [point for point in points() if point not in running]
                    trial = self._take(free[0], alive) if free else None
                if trial is None:
                    return
                self._run(trial, work)

    def _fail_dead_trials(self) -> None:
        optuna.storages.fail_stale_trials(self.study)
        for trial in self._trials(TrialState.RUNNING):
            died_in_take = trial.params.keys() != self.values.keys()
            if died_in_take or (self.server is None and not is_locked(self._lock(trial.number))):
                self.study.tell(trial.number, state=TrialState.FAIL)

    def _take(self, point: Point, alive: ExitStack) -> optuna.Trial:
        if not self._trials(TrialState.WAITING):  # a process that died here leaves a trial that waits
            self.study.enqueue_trial(point)
        trial = self.study.ask()
        if self.server is None:
            alive.enter_context(lock_folder(self._lock(trial.number)))
        else:
            self._storage.record_heartbeat(trial._trial_id)
            alive.enter_context(get_heartbeat_thread(trial._trial_id, self._storage))  # type: ignore[arg-type]
        for name, choices in self.values.items():
            trial.suggest_categorical(name, choices)
        return trial

    def _run(self, trial: optuna.Trial, work: Callable[[Point], tuple[float, dict[str, Any]]]) -> None:
        state, value, notes = TrialState.FAIL, None, dict[str, Any]()
        try:
            value, notes = work(trial.params)
            state = TrialState.COMPLETE
        except (optuna.TrialPruned, Exploded) as error:
            state = TrialState.PRUNED if isinstance(error, optuna.TrialPruned) else TrialState.FAIL
            notes = {"error": str(error)}
        finally:
            with self.alone():
                if trial.number in [running.number for running in self._trials(TrialState.RUNNING)]:
                    for key, note in notes.items():
                        trial.set_user_attr(key, note)
                    self.study.tell(trial, value, state)
                else:
                    log.warning("another process wrongly counted run %s as dead, so it will be repeated", trial.number)

    def _trials(self, state: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=(state,))

    def _lock(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.stem}-{Path(self.study.study_name).name}-run-{number}")
