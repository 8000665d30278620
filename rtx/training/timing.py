"""The time that is left."""

import time
from collections.abc import Callable


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """Return a function that gives the seconds that are left, at least 0; None without a limit."""
    until = None if seconds is None else time.monotonic() + seconds
    return lambda: None if until is None else max(0.0, until - time.monotonic())
