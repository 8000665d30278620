"""Killed at any moment: every file under its final name is whole, and only the work since the last one is lost.

Whole runs that are killed and resumed, bit for bit, are in tests/training/test_survival.py and test_shared_sweep.py.
"""

import os
import random
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rtx.training.files import write_whole


def replace(pipe: Any, path: Path) -> None:
    write_whole(path, b"0" * 100_000)
    pipe.send(0)
    for number in count():
        write_whole(path, str(number % 10).encode() * 100_000)


@pytest.mark.slow
def test_any_file_that_is_replaced(processes, tmp_path) -> None:
    draws = random.Random(0)
    for _ in range(8):
        ours, theirs = processes.Pipe(duplex=False)
        child = processes.Process(target=replace, args=(theirs, tmp_path / "file"))
        child.start()
        ours.recv()
        time.sleep(draws.uniform(0, 0.2))
        os.kill(child.pid, 9)
        child.join()
        assert child.exitcode == -9  # it was still at work
        content = (tmp_path / "file").read_bytes()
        assert len(content) == 100_000 and len(set(content)) == 1
