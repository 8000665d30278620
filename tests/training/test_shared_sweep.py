"""Processes share a sweep, in a folder or on a PostgreSQL server; one of them is killed in the middle of a run."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
import torch
from postgres import postgres
from run_tiny import main
from test_survival import Beat, drain

from rtx.training import study
from rtx.training.sweep import Sweep

VALUES = {"learning_rate": [1e-4, 1e-3, 1e-2, 1e-1]}
NUMBERS = [*range(6)]
COMMAND = ["sweep", "tiny", "gru", "--set", "learning_rate=1e-4,1e-3,1e-2,1e-1"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture(params=["folder", "server"])
def storage(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("server") if request.param == "server" else None


def words(folder: Path, storage: str | None) -> list[str]:
    places = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    return [*COMMAND, *places, *(["--storage", storage] if storage else [])]


def share(folder: Path, storage: str | None, pipe) -> None:
    torch.set_num_threads(1)
    study.HEARTBEAT = 1
    main(words(folder, storage), Beat(pipe, hold=10))


def wait_for_heartbeats(server: str) -> None:
    """Make all heartbeats an hour old, and wait until the one process that is alive has sent its next one."""
    engine = sqlalchemy.create_engine(server.replace("://", "+pg8000://"), poolclass=sqlalchemy.NullPool)
    count = "SELECT count(*) FROM trial_heartbeats WHERE heartbeat > (SELECT max(heartbeat) FROM old_heartbeats)"
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE trial_heartbeats SET heartbeat = heartbeat - INTERVAL '1 hour'")
        connection.exec_driver_sql("CREATE TABLE old_heartbeats AS SELECT heartbeat FROM trial_heartbeats")
    deadline, fresh = time.monotonic() + 60, 0
    while not fresh and time.monotonic() < deadline:
        time.sleep(0.2)
        with engine.begin() as connection:
            fresh = connection.exec_driver_sql(count).scalar()
    assert fresh == 1


def take_all(gate, path: Path, server: str | None) -> None:
    shared = study.SharedStudy(path, server, "numbers", {"number": NUMBERS})
    first = True

    def left() -> list[study.Point]:
        return [{"number": n} for n in NUMBERS if n not in {trial.value for trial in shared.study.trials}]

    def work(point: study.Point) -> tuple[float, dict[str, int]]:
        nonlocal first
        if first:  # each process holds a point before any of them ends one
            gate.wait(120)
            first = False
        return float(point["number"]), {"process": os.getpid()}

    shared.run(left, work)


@pytest.mark.slow
def test_of_many_processes_at_once_each_point_is_taken_by_one(tmp_path, storage, processes):
    gate = processes.Barrier(2)
    children = [
        processes.Process(target=take_all, args=(gate, tmp_path / "study.db", storage), daemon=True) for _ in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(200)
    assert [child.exitcode for child in children] == [0] * 2
    trials = study.SharedStudy(tmp_path / "study.db", storage, "numbers", {"number": NUMBERS}).study.trials
    assert sorted(trial.value for trial in trials) == NUMBERS
    assert len({trial.user_attrs["process"] for trial in trials}) == 2
    assert {path.name for path in tmp_path.iterdir()} <= {"study.db", "study.lock"}  # no lock of a trial is left


def test_two_sweeps_of_one_row_run_at_once_and_a_dead_run_of_one_is_taken_again(tmp_path):
    one, other = (study.SharedStudy(tmp_path / "sweep.db", None, f"tiny/gru/{name}", {"n": [0]}) for name in "ab")
    other.study.enqueue_trial({"n": 0})
    other.study.ask().suggest_categorical("n", [0])  # its process died

    def run(shared, work):
        shared.run(lambda: [] if 0 in [trial.value for trial in shared.study.trials] else [{"n": 0}], work)
        return 0.0, {}

    run(one, lambda _: run(other, lambda _: (0.0, {})))
    assert [[trial.value for trial in shared.study.trials] for shared in (one, other)] == [[0], [None, 0]]


@pytest.mark.slow
def test_each_run_ends_once_though_one_of_two_processes_is_killed(tmp_path, storage, processes, recipe, capsys):
    workers = []
    for _ in range(2):
        ours, theirs = processes.Pipe()
        child = processes.Process(target=share, args=(tmp_path, storage, theirs), daemon=True)
        child.start()
        theirs.close()
        workers.append((child, ours))
    for _, pipe in workers:  # until both are in the middle of a run, where they wait
        for _ in range(10):
            pipe.recv_bytes()
    (killed, _), (waiting, pipe) = workers
    os.kill(killed.pid, 9)
    killed.join()
    if storage:
        wait_for_heartbeats(storage)

    with pytest.raises(SystemExit) as early:  # takes all runs but one, also the killed process's
        main([*words(tmp_path, storage), "--test"])
    sweep = Sweep(recipe, "gru", VALUES, runs=tmp_path / "runs", storage=storage)
    assert early.value.code == 1 and len(sweep.left(sweep.open().study)) == 1
    pipe.send_bytes(b"go on")
    drain(pipe)
    waiting.join(60)
    assert waiting.exitcode == 0
    trials = sweep.open().study.trials
    ended = Counter(json.dumps(trial.params) for trial in trials if trial.state.name == "COMPLETE")
    assert ended == {json.dumps(point): 1 for point in sweep.grid}
    assert Counter(trial.state.name for trial in trials) == {"COMPLETE": 4, "FAIL": 1}  # the killed one

    capsys.readouterr()
    main([*words(tmp_path, storage), "--test"])
    shown = capsys.readouterr().out
    scores = [float(score) for score in re.findall(r"^ *(\d+\.\d+)  epoch", shown, re.MULTILINE)]
    assert len(scores) == 4 and scores == sorted(scores)
    (path,) = (tmp_path / "results").rglob("*.json")
    assert json.loads(path.read_text())["validation"] == pytest.approx(scores[0], abs=1e-4)


@pytest.mark.parametrize(
    ("storage", "error"), [("postgresql://rtx@127.0.0.1:9/none", OSError), ("mysql://host/none", ValueError)]
)
def test_a_server_that_cannot_be_used_is_one_error(tmp_path, recipe, storage, error):
    with pytest.raises(error, match="storage: "):
        Sweep(recipe, "gru", VALUES, runs=tmp_path, storage=storage).run()
