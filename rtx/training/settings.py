"""How a model is trained, and what of that cannot be."""

import math
from dataclasses import dataclass

from rtx.nn.validate import check_above_zero, check_choice, check_flag, check_positive, is_number
from rtx.tasks.loader import ORDERS

OPTIMIZERS = ("sgd", "adam", "nt-asgd")
WHOLE_NUMBERS = (
    "epochs",
    "batch_size",
    "patience",
    "anneal_every",
    "stop_after",
    "accumulate",
    "limit",
    "limit_evaluation",
)


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Args:
        epochs: passes over the training split.
        batch_size: sequences per update.
        optimizer: "sgd", "adam", or "nt-asgd", SGD that averages once validation stops improving.
        learning_rate: at the start.
        reduction: a batch's loss is the "sum" over what is scored, or its "mean".
        clip: largest gradient norm; None leaves gradients as they are.
        anneal: factor on the learning rate when validation has not improved for more than `patience` epochs; None:
            constant.
        patience: epochs that may pass without an improvement of a ten-thousandth before the rate is annealed, as
            torch's ReduceLROnPlateau counts them; of "nt-asgd" its non-monotone interval.
        anneal_every: epochs; if given, `anneal` comes so often, whatever validation says.
        stop_after: epochs without improvement after which training ends; None: never.
        stop_at: training ends when validation is better than this; None: never.
        batching: which sequences of the training split stand together, and in which order: one of
            `rtx.tasks.loader.ORDERS`.
        carry: read a text in order, each batch from the state the one before left; needs batching "columns" and a
            model with `read`.
        accumulate: batches per update.
        weight_decay: the optimiser's.
        ar, tar: weights of activation regularisation, α and β of `rtx.training.activations.activation_penalty`.
        auxiliary: symbols ahead that every layer of a character Transformer learns to predict at every position, see
            `rtx.training.auxiliary_losses`; 0: only what is scored is learned.
        slide: a character Transformer is tested by a segment that slides by one symbol.
        seconds: training ends after so many, wherever it is; None: only after its epochs.
        limit: train on the first so many sequences only; with batching "fresh" on so many in each epoch; None: on all.
        limit_evaluation: validate and test on the first so many sequences only; None: on all.
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
    accumulate: int = 1
    weight_decay: float = 0.0
    ar: float = 0.0
    tar: float = 0.0
    auxiliary: int = 0
    slide: bool = False
    seconds: float | None = None
    limit: int | None = None
    limit_evaluation: int | None = None

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("reduction", self.reduction, ("sum", "mean"))
        check_choice("batching", self.batching, ORDERS)
        for name in ("carry", "slide"):
            check_flag(name, getattr(self, name))
        if self.carry and self.batching != "columns":
            raise ValueError(
                f"carry: expected batching 'columns', which keeps a text's pieces in order, got {self.batching!r}"
            )
        if self.auxiliary != 0:
            check_positive("auxiliary", self.auxiliary)
        for name in WHOLE_NUMBERS:
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        for name in ("learning_rate", "clip", "anneal", "stop_at", "seconds"):
            value = getattr(self, name)
            if value is not None:
                check_above_zero(name, value)
        if self.anneal is not None and self.anneal >= 1 and self.anneal_every is None:
            raise ValueError(f"anneal: expected a number below 1 on a plateau, got {self.anneal!r}")
        for name in ("weight_decay", "ar", "tar"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < math.inf):
                raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")
