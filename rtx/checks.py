"""Checks of names, numbers, flags and seeds. They need no torch, so a command can refuse a wrong name at once."""

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real

LARGEST_SEED = 2**32 - 1  # the largest that NumPy's generator takes


def check_choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of `allowed`. The error suggests the nearest name."""
    names = list(allowed)
    if value in names:
        return value
    lower = {one.lower(): one for one in names}  # papers write GRU and MNIST
    near = get_close_matches(str(value).lower(), lower, n=1)
    hint = f"; did you mean {lower[near[0]]!r}?" if near else ""
    raise ValueError(f"{name}: {value!r} is unknown, allowed are {', '.join(names) or 'none'}{hint}")


def check_flag(name: str, value: bool) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false, got {value!r}")
    return value


def check_seed(name: str, seed: int) -> int:
    """Return `seed` if every random number generator takes it."""
    if not is_whole(seed) or not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"{name}: expected a whole number from 0 to {LARGEST_SEED}, got {seed!r}")
    return int(seed)


def is_whole(value: object) -> bool:
    """Whether `value` is a whole number of Python or NumPy. Python would count True and False too."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_whole(name: str, value: int, least: int) -> int:
    """Return `value` as an int if it is a whole number of at least `least`."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def is_number(value: object) -> bool:
    """Whether `value` is a real number of Python or NumPy. Python would count True and False too."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_fraction(name: str, value: float) -> float:
    """Return `value` if it is in [0, 1), as a dropout probability must be."""
    if not (is_number(value) and 0 <= value < 1):
        raise ValueError(f"{name}: expected a number from 0 up to, not including, 1, got {value!r}")
    return value


def check_above_zero(name: str, value: float) -> float:
    """Return `value` if it is a finite number above 0."""
    if not (is_number(value) and 0 < value < float("inf")):
        raise ValueError(f"{name}: expected a finite number above 0, got {value!r}")
    return value


def check_at_least_zero(name: str, value: float) -> float:
    """Return `value` if it is a finite number of at least 0."""
    if not (is_number(value) and 0 <= value < float("inf")):
        raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")
    return value
