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

from rtx.cli import main
from rtx.tasks import data
from rtx.training.files import write_whole
from rtx.training.study import SharedStudy

pytestmark = pytest.mark.slow

NEWNS, NEWUSER = 0x00020000, 0x10000000  # of unshare(2)


def alone() -> bool:
    """Give this process mounts that no other process sees, and say whether the system allows that."""
    user, group = os.geteuid(), os.getegid()
    if sys.platform != "linux":
        return False
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
    write_whole(disk / "page.html", b"old")
    shared, left = SharedStudy(disk / "sweep.db", None, "one", {"rate": [1, 2]}), [{"rate": 1}]

    def score(point: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        left.clear()
        return 0.5, {"epoch": 1}

    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    errors = [
        error_of(lambda: write_whole(disk / "page.html", b"new" * 5000)),
        error_of(lambda: shared.run(lambda: left, score)),
    ]
    arrays = data.cached_arrays("squares", lambda: {"squares": np.arange(9)})
    (disk / "filler").unlink()
    left = [{"rate": 1}]
    shared.run(lambda: left, score)
    return {
        "errors": errors,
        "page": (disk / "page.html").read_text(),
        "sweep": [trial.value for trial in shared.study.trials if trial.state.is_finished()],
        "arrays": arrays["squares"].tolist(),
        "partial": [str(path) for path in disk.rglob("*partial*")],
    }


def on_a_read_only_disk(disk: Path) -> dict[str, Any]:
    sys.argv = ["rtx", "train", "ffa-add", "attention-50", "--scale", "quick", "--runs", str(disk / "runs")]
    with contextlib.redirect_stderr(io.StringIO()) as said, pytest.raises(SystemExit) as end:
        main()
    return {
        "error": error_of(lambda: write_whole(disk / "page.html", b"new")),
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
    page, sweep = full["errors"]
    assert "No space left on device" in page and "page.html" in page and "sweep.db" in sweep, full["errors"]
    assert (full["page"], full["sweep"], full["partial"]) == ("old", [0.5], [])
    assert full["arrays"] == list(range(9))


def test_a_folder_that_cannot_be_written(met) -> None:  # type: ignore[no-untyped-def]
    read_only = met(on_a_read_only_disk)
    assert "Read-only file system" in read_only["error"]
    assert read_only["page"] == "old" and read_only["arrays"] == list(range(9))
    code, said = read_only["command"]
    assert code == 2 and len(said.splitlines()) == 1, said
    assert said.startswith("rtx: ") and "Read-only file system" in said and "runs" in said
