"""Controls moved from code: only to where a hand could move them."""

from collections.abc import Mapping
from typing import Any

from ipywidgets import FloatLogSlider
from traitlets import TraitError

from rtx.nn.validate import is_number, is_whole


def move(name: str, control: Any, value: Any) -> None:
    """Set a control, which a slider would silently do as far as it goes.

    Raises:
        ValueError: naming the control, if it has no such value to offer.
    """
    bounded = is_number(control.value) and hasattr(control, "min")
    if bounded and not isinstance(control, FloatLogSlider):  # whose bounds are powers
        # one of a single value is disabled, with room for a second: see `Explorer`
        high = control.min if control.disabled and control.max == control.min + 1 else control.max
        fits, kind = (is_whole, "whole ") if is_whole(control.value) else (is_number, "")
        if not fits(value) or not control.min <= value <= high:
            raise ValueError(f"{name}: expected a {kind}number from {control.min} to {high}, got {value!r}")
    try:
        control.value = value
    except TraitError as error:
        raise ValueError(f"{name}: expected {_offered(control, error)}, got {value!r}") from None


def _offered(control: Any, error: TraitError) -> str:
    options = getattr(control, "options", None)
    if options is None:
        return type(control.value).__name__ if control.value is not None else str(error)
    pairs = options.items() if isinstance(options, Mapping) else options
    return f"one of {', '.join(str(one[1] if isinstance(one, tuple) else one) for one in pairs)}"
