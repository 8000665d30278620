"""How a model is trained, with a check of each value."""

from dataclasses import dataclass, fields
from typing import Any

from rtx.checks import check_above_zero, check_at_least_zero, check_choice, check_flag, check_whole

CHOICES = {"optimizer": ("sgd", "adam", "nt-asgd"), "reduction": ("sum", "mean")}
FLAGS = ("carry", "slide")
AT_LEAST_ZERO = ("weight_decay", "ar", "tar")
ABOVE_ZERO = ("learning_rate", "clip", "anneal", "stop_at", "seconds")
MOST_SECONDS = 1e9  # 30 years; Python's timedelta has a limit, too


@dataclass(frozen=True)
class Settings:
    """How a model is trained."""

    epochs: int  # passes over the training split
    batch_size: int  # sequences per update
    optimizer: str  # "sgd", "adam", or "nt-asgd": SGD with averaged weights once validation stops improving
    learning_rate: float  # at the start
    reduction: str = "mean"  # a batch's loss is the "sum" over what is scored, or its "mean"
    clip: float | None = None  # largest gradient norm; None leaves gradients as they are
    anneal: float | None = None  # factor on the rate when validation has not improved for more than `patience` epochs
    # epochs without an improvement of at least 0.01 % before the rate is annealed, as torch's ReduceLROnPlateau counts
    # them; for "nt-asgd" its non-monotone interval
    patience: int = 3
    anneal_every: int | None = None  # anneal the rate every so many epochs, whatever the validation
    stop_after: int | None = None  # training ends after so many epochs without improvement; None: never
    stop_at: float | None = None  # training ends when validation is better than this; None: never
    batching: str = "shuffled"  # the order of the training split, one of `rtx.tasks.loader.ORDERS`
    # read a text in order, and start each batch from the state that the batch before left: this needs batching
    # "columns" and a language model whose state has a fixed size
    carry: bool = False
    weight_decay: float = 0.0  # the optimiser's
    ar: float = 0.0  # α of `rtx.training.auxiliary_losses.activation_penalty`
    tar: float = 0.0  # β of the same
    auxiliary: int = 0  # symbols ahead that every layer learns to predict, see `rtx.training.auxiliary_losses`; 0: none
    slide: bool = False  # test a character Transformer with a segment that slides by one symbol
    seconds: float | None = None  # training ends after so many; None: only after its epochs
    limit: int | None = None  # train on the first so many sequences only, or with batching "fresh" on so many per epoch
    limit_evaluation: int | None = None  # validate and test on the first so many sequences only

    def __post_init__(self) -> None:
        for one in fields(self):
            check_setting(one.name, getattr(self, one.name))
        if self.carry and self.batching != "columns":
            raise ValueError(f"carry: expected batching 'columns', which keeps a text in order, got {self.batching!r}")
        if self.anneal is not None and self.anneal >= 1 and self.anneal_every is None:
            raise ValueError(f"anneal: expected a number below 1 on a plateau, got {self.anneal!r}")


SETTINGS = {one.name: one for one in fields(Settings)}
"""The settings by name."""


def check_setting(name: str, value: Any) -> None:
    """Raise a ValueError if the value of a setting is wrong, whatever the other settings are."""
    if value is None and SETTINGS[name].default is None:
        return
    if name == "batching":
        from rtx.tasks.loader import ORDERS  # it imports torch, which takes seconds

        check_choice(name, value, ORDERS)
    elif name in CHOICES:
        check_choice(name, value, CHOICES[name])
    elif name in FLAGS:
        check_flag(name, value)
    elif name in AT_LEAST_ZERO:
        check_at_least_zero(name, value)
    elif name in ABOVE_ZERO:
        check_above_zero(name, value)
    else:
        check_whole(name, value, 0 if name == "auxiliary" else 1)
    if name == "seconds" and value > MOST_SECONDS:
        raise ValueError(f"seconds: expected at most {MOST_SECONDS:g}, got {value!r}")
