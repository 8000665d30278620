"""Several processes: a ledger loses no result, no run is begun twice, and the same seed gives the same bits."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from test_ledger import result
from tiny_recipe import CPU, tiny_recipe
from tiny_recipe import TASKS as TINY

from rtx.evidence.ledger import read_result, write_result
from rtx.evidence.record import train
from rtx.tasks import TASKS
from rtx.training import provenance
from rtx.training.fit import run_folder
from rtx.training.lock import lock_folder

EIGHT = range(8)


def together(processes: Any, work: Any, *arguments: Any) -> None:
    """Eight processes do `work(gate, number, …)`; they wait at the gate until all are there."""
    gate = processes.Barrier(len(EIGHT))
    children = [processes.Process(target=work, args=(gate, number, *arguments)) for number in EIGHT]
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0] * len(EIGHT)


def write(gate: Any, number: int, folder: Path) -> None:
    provenance.datetime = type("Still", (), {"now": lambda zone: Still})  # as if the clock had stopped
    gate.wait()
    for epoch in range(1, 11):
        write_result(result(epoch=100 * number + epoch), folder)


class Still:
    """A time that never changes."""

    def __format__(self, spec: str) -> str:
        return "20260101T000000000000Z"


Still = Still()  # type: ignore[assignment,misc]


@pytest.mark.slow
def test_a_ledger_keeps_what_eight_write_at_once(processes, tmp_path) -> None:
    together(processes, write, tmp_path)
    epochs = Counter(read_result(path).epoch for path in tmp_path.rglob("*.json"))
    assert epochs == {100 * number + epoch: 1 for number in EIGHT for epoch in range(1, 11)}
    assert list(tmp_path.rglob("*.partial")) == []


def train_one(gate: Any, number: int, folder: Path) -> None:
    torch.set_num_threads(1)
    TASKS.update(TINY)
    gate.wait()
    plan = tiny_recipe().plan("r-transformer")
    train(plan, seed=number, epochs=2, runs=folder / "runs", results=folder / "results", **CPU)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_in_another_process(processes, tmp_path, monkeypatch) -> None:
    """Strings have other hashes there. Another seed gives another run: tests/evidence/test_record.py."""
    for name, task in TINY.items():
        monkeypatch.setitem(TASKS, name, task)
    train_one(threading.Barrier(1), 5, tmp_path / "here")
    gate = processes.Barrier(1)
    child = processes.Process(target=train_one, args=(gate, 5, tmp_path / "there"))
    child.start()
    child.join(300)
    here, there = (load_file(next((tmp_path / name).rglob("best.safetensors"))) for name in ("here", "there"))
    assert here.keys() == there.keys() and all(torch.equal(here[name], there[name]) for name in here)


def hold(pipe: Any, folder: Path) -> None:
    with lock_folder(folder):
        pipe.send("held")
        time.sleep(600)


def test_the_same_run_is_not_begun_twice_and_a_killed_one_is_not_in_the_way(processes, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(TASKS, "tiny", TINY["tiny"])
    plan = tiny_recipe().plan("gru")
    where = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
    ours, theirs = processes.Pipe()
    first = processes.Process(target=hold, args=(theirs, run_folder(plan, 0, where["runs"])))
    first.start()
    assert ours.recv() == "held"
    with pytest.raises(ValueError, match="gru-plain-s0: "):
        train(plan, epochs=1, **where, **CPU)
    assert not where["results"].exists()
    first.kill()
    first.join()
    assert train(plan, epochs=1, **where, **CPU).exists()
