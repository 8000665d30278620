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
    """How a model is trained.

    Args:
        epochs: passes over the training split.
        batch_size: sequences per update.
        optimizer: "sgd", "adam", or "nt-asgd", which is SGD with averaged weights once validation stops improving.
        learning_rate: at the start.
        reduction: a batch's loss is the "sum" over what is scored, or its "mean".
        clip: largest gradient norm; None leaves gradients as they are.
        anneal: factor on the learning rate when validation has not improved for more than `patience` epochs; None:
            the rate is constant.
        patience: epochs without an improvement of at least 0.01 % before the rate is annealed, as torch's
            ReduceLROnPlateau counts them; for "nt-asgd" its non-monotone interval.
        anneal_every: epochs; if given, the rate is annealed every so many epochs, whatever the validation.
        stop_after: epochs without improvement after which training ends; None: never.
        stop_at: training ends when validation is better than this; None: never.
        batching: the order of the training split, one of `rtx.tasks.loader.ORDERS`.
        carry: read a text in order, and start each batch from the state that the batch before left. Needs batching
            "columns" and a language model whose state has a fixed size.
        weight_decay: the optimiser's.
        ar, tar: weights of activation regularisation, α and β of `rtx.training.activations.activation_penalty`.
        auxiliary: symbols ahead that every layer of a character Transformer learns to predict at every position, see
            `rtx.training.auxiliary_losses`; 0: no auxiliary losses.
        slide: test a character Transformer with a segment that slides by one symbol.
        seconds: training ends after so many; None: only after its epochs.
        limit: train on the first so many sequences only, or with batching "fresh" on so many in each epoch; None: all.
        limit_evaluation: validate and test on the first so many sequences only; None: all.
    """

    epochs: int
    batch_size: int
    optimizer: str
    learning_rate: float
    reduction: str = "mean"
    clip: float | None = None
    anneal: float | None = None
    patience: int = 3
    anneal_every: int | None = None
    stop_after: int | None = None
    stop_at: float | None = None
    batching: str = "shuffled"
    carry: bool = False
    weight_decay: float = 0.0
    ar: float = 0.0
    tar: float = 0.0
    auxiliary: int = 0
    slide: bool = False
    seconds: float | None = None
    limit: int | None = None
    limit_evaluation: int | None = None

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
