"""How long there is left."""

import time
from collections.abc import Callable


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """A function that says how many seconds are left of these, never less than 0; None if they are None."""
    until = None if seconds is None else time.monotonic() + seconds
    return lambda: None if until is None else max(0.0, until - time.monotonic())
