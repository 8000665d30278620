"""Check the sizes in a file that somebody else may have written, before anything of that size is made."""

from typing import Any

LARGEST = 2**24
"""Larger than any size of a model here."""


def check_sizes(name: str, arguments: dict[str, Any]) -> None:
    """Check that each argument is a word, a flag or a number up to `LARGEST`. A whole `seed` may be larger."""
    for key, value in arguments.items():
        if key == "seed" and isinstance(value, int):
            continue
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | int | float | None) or (isinstance(one, int | float) and abs(one) > LARGEST):
                raise ValueError(f"{name}: expected {key} to be a word or a number up to {LARGEST}, got {one!r:.60}")
