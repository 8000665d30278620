"""Waiting for what another thread does."""

import time
from collections.abc import Callable

SOON = 60  # seconds


def until(reached: Callable[[], object]) -> None:
    """Wait for something to be so, and fail if it is not so soon."""
    end = time.monotonic() + SOON
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)
