"""The time that is left, and times as they are typed."""

import re
import time
from collections.abc import Callable


def countdown(seconds: float | None) -> Callable[[], float | None]:
    """Return a function that gives the seconds that are left, at least 0; None without a limit."""
    until = None if seconds is None else time.monotonic() + seconds
    return lambda: None if until is None else max(0.0, until - time.monotonic())


def parse_time(text: str | None) -> float | None:
    """Return the seconds in `HH:MM:SS`; None for None."""
    if text is None:
        return None
    if not re.fullmatch(r"\d+:[0-5]\d:[0-5]\d", text):
        raise ValueError(f"--max-time: expected HH:MM:SS, such as 01:30:00, got {text!r}")
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600.0 * hours + 60 * minutes + seconds


def format_time(seconds: float) -> str:
    """Whole seconds as `parse_time` reads them."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"
