"""What tests of work in the background share."""

import threading
from collections.abc import Iterator

import pytest

from rtx.lab import background


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """After the test, what still runs is ended, and no thread of ours is left."""
    yield
    background.end()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("rtx")] == []
