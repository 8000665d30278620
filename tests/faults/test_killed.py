"""Killed at any moment: every file under its final name is whole, and only the work since the last one is lost.

Whole runs that are killed and resumed, bit for bit, are in tests/training/test_survival.py and test_shared_sweep.py.
"""

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
def test_any_file_that_is_replaced(killed, tmp_path) -> None:
    for _ in killed(replace, tmp_path / "file", longest=0.2):
        content = (tmp_path / "file").read_bytes()
        assert len(content) == 100_000 and len(set(content)) == 1
