"""The names of the precisions that a run can have."""

from rtx.checks import check_choice

PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")


def check_precision(precision: str) -> str:
    """Return the name of a precision if it is known. Lightning's short names are not, so each has one name."""
    return check_choice("precision", precision, PRECISIONS)
