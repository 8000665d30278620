"""A full disk and a read-only folder: one error, and the files that were there stay.

The disk is a tmpfs of 600 kB, in a mount namespace of its own. A run that meets one: tests/training/test_survival.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEFORE = """
import json, sys
from pathlib import Path
import numpy as np, torch
sys.path += ["tests/evidence"]
from rtx.tasks import data
from rtx.training.files import write_whole
from rtx.training.study import SharedStudy
from rtx.evidence.ledger import read_result, write_result
from rtx.training.states import Checkpoints, load_state
from test_ledger import result

disk = Path(sys.argv[1])
state = {"weights": torch.zeros(10_000)}
def error_of(work):
    try:
        work()
    except OSError as error:
        return str(error)
    return "no error"
"""
FULL = """
import os
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


def on(disk: Path, mount: str, code: str) -> dict:
    """Return what a script prints, which sees `disk` as `mount` makes it. No other process does."""
    import json

    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace; on a limited file, tests/training/test_survival.py runs everywhere")
    script = disk.parent / "script.py"
    script.write_text(BEFORE + code)
    line = f'{mount} && exec "$0" "$1" "$2"'
    environment = os.environ | {"RTX_CACHE": str(disk), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*alone, "sh", "-c", line, sys.executable, script, disk],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.mark.slow
def test_a_full_disk(disk: Path) -> None:
    found = on(disk, 'mount -t tmpfs -o size=600k tmpfs "$2"', FULL)
    *errors, sweep = found["errors"]
    assert all("No space left on device" in error for error in errors) and "sweep.db" in sweep, found["errors"]
    assert "last.ckpt" in found["errors"][0] and "page.html" in found["errors"][1]
    assert (found["checkpoint"], found["page"], found["results"]) == (1, "old", [True])
    assert found["sweep"] == [0.5] and found["arrays"] == list(range(9)) and found["partial"] == []


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(disk: Path) -> None:
    (disk / "page.html").write_text("old")
    found = on(disk, 'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2"', READ_ONLY)
    assert all("Read-only file system" in error for error in found["errors"]), found["errors"]
    assert found["page"] == "old" and found["arrays"] == list(range(9))
    code, said = found["command"]
    assert code == 2 and len(said.splitlines()) == 1, said
    assert said.startswith("rtx: ") and "Read-only file system" in said and "runs" in said
