"""The names of the precisions in which a run may compute: one for each, and what the device really does."""

from rtx.nn.validate import check_choice

SHORT = {"64": "64-true", "32": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}  # Lightning's older names
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")


def parse_precision(precision: str) -> str:
    """The one name of a precision, so that a run has one name and one line in its table.

    Raises:
        ValueError: if there is none of this name.
    """
    return check_choice("precision", SHORT.get(precision, precision), PRECISIONS)


def check_taken(asked: str, taken: str, device: str) -> None:
    """Refuse what Lightning would replace with a warning: the ledger would name another precision than the run's.

    Raises:
        ValueError: if it took another.
    """
    if taken != asked:
        raise ValueError(f"precision: there is no {asked} on this {device}; {taken} is what comes nearest")
