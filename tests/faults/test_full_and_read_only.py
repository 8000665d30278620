"""A full disk and a read-only folder: one error, and the files that were there stay.

The disk is a tmpfs of 600 kB, in a mount namespace of its own. A run that meets one: tests/training/test_survival.py.
"""

import contextlib
import ctypes
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_ledger import result

from rtx.cli import main
from rtx.evidence.ledger import read_result, write_result
from rtx.tasks import data
from rtx.training.files import write_whole
from rtx.training.states import Checkpoints, load_state
from rtx.training.study import SharedStudy

pytestmark = pytest.mark.slow

STATE = {"weights": torch.zeros(10_000)}
NEWNS, NEWUSER = 0x00020000, 0x10000000  # of unshare(2)


def alone() -> bool:
    """Give this process mounts that no other process sees, and say whether the system allows that."""
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None).unshare(NEWNS | (NEWUSER if user else 0)):
        return False
    if user:  # it is root in its own namespace
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path("/proc/self", name).write_text(text)
    return True


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


def error_of(work: Callable[[], object]) -> str:
    try:
        work()
    except OSError as error:
        return str(error)
    return "no error"


def on_a_full_disk(disk: Path) -> dict[str, Any]:
    Checkpoints().save_checkpoint(STATE | {"number": 1}, disk / "last.ckpt")
    write_whole(disk / "page.html", b"old")
    first = write_result(result(), disk)
    shared, left = SharedStudy(disk / "sweep.db", None, "one", {"rate": [1, 2]}), [{"rate": 1}]

    def score(point: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        left.clear()
        return 0.5, {"epoch": 1}

    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    errors = [
        error_of(lambda: Checkpoints().save_checkpoint(STATE | {"number": 2}, disk / "last.ckpt")),
        error_of(lambda: write_whole(disk / "page.html", b"new" * 5000)),
        error_of(lambda: write_result(result(), disk)),
        error_of(lambda: shared.run(lambda: left, score)),
    ]
    arrays = data.cached_arrays("squares", lambda: {"squares": np.arange(9)})
    (disk / "filler").unlink()
    left = [{"rate": 1}]
    shared.run(lambda: left, score)
    return {
        "errors": errors,
        "checkpoint": load_state(disk / "last.ckpt")["number"],
        "page": (disk / "page.html").read_text(),
        "results": [read_result(path) == read_result(first) for path in disk.rglob("*.json")],
        "sweep": [trial.value for trial in shared.study.trials if trial.state.is_finished()],
        "arrays": arrays["squares"].tolist(),
        "partial": [str(path) for path in disk.rglob("*partial*")],
    }


def on_a_read_only_disk(disk: Path) -> dict[str, Any]:
    sys.argv = ["rtx", "train", "ffa-add", "attention-50", "--scale", "quick", "--runs", str(disk / "runs")]
    with contextlib.redirect_stderr(io.StringIO()) as said, pytest.raises(SystemExit) as end:
        main()
    return {
        "errors": [
            error_of(lambda: Checkpoints().save_checkpoint(STATE | {"number": 2}, disk / "last.ckpt")),
            error_of(lambda: write_whole(disk / "page.html", b"new")),
            error_of(lambda: write_result(result(), disk)),
        ],
        "page": (disk / "page.html").read_text(),
        "arrays": data.cached_arrays("squares", lambda: {"squares": np.arange(9)})["squares"].tolist(),
        "command": (end.value.code, said.getvalue()),
    }


def work(pipe: Any, folder: Path, meet: Callable[[Path], dict[str, Any]]) -> None:
    """Send what is met in a folder that cannot be written. No other process sees it so."""
    allowed = alone()
    if allowed:
        mount("--make-rprivate", "/")
        if meet is on_a_full_disk:
            mount("-t", "tmpfs", "-o", "size=600k", "tmpfs", folder)
        else:
            (folder / "page.html").write_text("old")
            mount("--bind", folder, folder)
            mount("-o", "remount,ro,bind", folder)
    os.environ["RTX_CACHE"] = str(folder)
    pipe.send(meet(folder) if allowed else None)


@pytest.fixture
def met(processes, tmp_path: Path) -> Callable[[Callable[[Path], dict[str, Any]]], dict[str, Any]]:  # type: ignore[no-untyped-def]
    def run(meet: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        ours, theirs = processes.Pipe(duplex=False)
        child = processes.Process(target=work, args=(theirs, tmp_path, meet))
        child.start()
        theirs.close()
        found = ours.recv()
        child.join()
        if found is None:
            pytest.skip("needs a mount namespace; on a limited file, tests/training/test_survival.py runs everywhere")
        return dict(found)

    return run


def test_a_full_disk(met) -> None:  # type: ignore[no-untyped-def]
    full = met(on_a_full_disk)
    *errors, sweep = full["errors"]
    assert all("No space left on device" in error for error in errors) and "sweep.db" in sweep, full["errors"]
    assert "last.ckpt" in errors[0] and "page.html" in errors[1]
    assert (full["checkpoint"], full["page"], full["results"]) == (1, "old", [True])
    assert full["sweep"] == [0.5] and full["arrays"] == list(range(9)) and full["partial"] == []


def test_a_folder_that_cannot_be_written(met) -> None:  # type: ignore[no-untyped-def]
    read_only = met(on_a_read_only_disk)
    assert all("Read-only file system" in error for error in read_only["errors"]), read_only["errors"]
    assert read_only["page"] == "old" and read_only["arrays"] == list(range(9))
    code, said = read_only["command"]
    assert code == 2 and len(said.splitlines()) == 1, said
    assert said.startswith("rtx: ") and "Read-only file system" in said and "runs" in said
