"""A full disk and a read-only folder: one error, and the files that were there stay.

The disk is a tmpfs of 600 kB, in a mount namespace of its own. A run that meets one: tests/training/test_survival.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BEFORE = """
import json, os, sys
from pathlib import Path
import numpy as np, torch
sys.path += ["tests/evidence"]
from rtx.tasks import data
from rtx.training.files import write_whole
from rtx.training.study import SharedStudy
from rtx.evidence.ledger import read_result, write_result
from rtx.training.states import Checkpoints, load_state
from test_ledger import result

state = {"weights": torch.zeros(10_000)}
def error_of(work):
    try:
        work()
    except OSError as error:
        return str(error)
    return "no error"
"""
FULL = """
disk = Path(sys.argv[1])
os.environ["RTX_CACHE"] = str(disk)
Checkpoints().save_checkpoint(state | {"number": 1}, disk / "last.ckpt")
write_whole(disk / "page.html", b"old")
first = write_result(result(), disk)
shared = SharedStudy(disk / "sweep.db", None, "one", {"rate": [1, 2]})
left = [{"rate": 1}]
def score(point):
    left.clear()
    return 0.5, {"epoch": 1}
fd = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(fd, bytes(4096))
except OSError:
    pass
errors = [
    error_of(lambda: Checkpoints().save_checkpoint(state | {"number": 2}, disk / "last.ckpt")),
    error_of(lambda: write_whole(disk / "page.html", b"new" * 5000)),
    error_of(lambda: write_result(result(), disk)),
    error_of(lambda: shared.run(lambda: left, score)),
]
arrays = data.cached_arrays("squares", lambda: {"squares": np.arange(9)})
os.close(fd)
os.unlink(disk / "filler")
left = [{"rate": 1}]
shared.run(lambda: left, score)
print(json.dumps({
    "errors": errors,
    "checkpoint": load_state(disk / "last.ckpt")["number"],
    "page": (disk / "page.html").read_text(),
    "results": [read_result(path) == read_result(first) for path in disk.rglob("*.json")],
    "sweep": [trial.value for trial in shared.study.trials if trial.state.is_finished()],
    "arrays": arrays["squares"].tolist(),
    "partial": [str(path) for path in disk.rglob("*partial*")],
}))
"""
READ_ONLY = """
disk = Path(sys.argv[2])
os.environ["RTX_CACHE"] = str(disk)
import contextlib, io
from rtx.cli import main
sys.argv = ["rtx", "train", "ffa-add", "attention-50", "--scale", "quick", "--runs", str(disk / "runs")]
said, code = io.StringIO(), 0
with contextlib.redirect_stderr(said):
    try:
        main()
    except SystemExit as end:
        code = end.code
print(json.dumps({
    "errors": [
        error_of(lambda: Checkpoints().save_checkpoint(state | {"number": 2}, disk / "last.ckpt")),
        error_of(lambda: write_whole(disk / "page.html", b"new")),
        error_of(lambda: write_result(result(), disk)),
    ],
    "page": (disk / "page.html").read_text(),
    "arrays": data.cached_arrays("squares", lambda: {"squares": np.arange(9)})["squares"].tolist(),
    "command": [code, said.getvalue()],
}))
"""


MOUNT = """mount -t tmpfs -o size=600k tmpfs "$2" && mount --bind "$3" "$3" && mount -o remount,ro,bind "$3" &&
exec "$0" "$1" "$2" "$3"
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What a script meets on a full disk, then in a folder that is read-only. No other process sees the two so."""
    folder = tmp_path_factory.mktemp("mounted")
    full, read_only, script = folder / "full", folder / "read-only", folder / "script.py"
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace; on a limited file, tests/training/test_survival.py runs everywhere")
    full.mkdir(), read_only.mkdir()
    (read_only / "page.html").write_text("old")
    script.write_text(BEFORE + FULL + READ_ONLY)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [*alone, "sh", "-c", MOUNT, sys.executable, script, full, read_only]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_full_disk(found: list[dict[str, Any]]) -> None:
    full, _ = found
    *errors, sweep = full["errors"]
    assert all("No space left on device" in error for error in errors) and "sweep.db" in sweep, full["errors"]
    assert "last.ckpt" in errors[0] and "page.html" in errors[1]
    assert (full["checkpoint"], full["page"], full["results"]) == (1, "old", [True])
    assert full["sweep"] == [0.5] and full["arrays"] == list(range(9)) and full["partial"] == []


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(found: list[dict[str, Any]]) -> None:
    _, read_only = found
    assert all("Read-only file system" in error for error in read_only["errors"]), read_only["errors"]
    assert read_only["page"] == "old" and read_only["arrays"] == list(range(9))
    code, said = read_only["command"]
    assert code == 2 and len(said.splitlines()) == 1, said
    assert said.startswith("rtx: ") and "Read-only file system" in said and "runs" in said
