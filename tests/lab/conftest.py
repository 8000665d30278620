"""What tests of work in the background share; the cells of tests/browser can be imported."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtx.lab import background

sys.path.append(str(Path(__file__).parents[1] / "browser"))


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """After the test, what still runs is ended, and no thread of ours is left."""
    yield
    background.end()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("rtx")] == []
