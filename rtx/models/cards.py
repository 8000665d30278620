"""What a model's paper says about it: the source, the size it was used at, how far back its last output can see."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Card(NamedTuple):
    """A registered model's data sheet.

    Args:
        paper: authors and year.
        table: where `sizes` come from.
        sizes: the hyper-parameters the paper used there.
        reach: positions that the last output depends on, itself included, for the model's hyper-parameters; None
            where it is the whole past. A test measures it.
    """

    paper: str
    table: str
    sizes: dict[str, Any]
    reach: Callable[..., int | None]


def whole_past(**hyperparameters: object) -> None:
    """The reach of a model that forgets nothing by construction."""


CARDS: dict[str, Card] = {
    "r-transformer": Card(
        "Wang et al. (2019)",
        "Table 2, Nottingham",
        {"d_model": 160, "layers": 3, "heads": 4, "window": 6},
        whole_past,
    ),
    "transformer": Card(
        "Vaswani et al. (2017)", "Wang et al., Table 2", {"d_model": 160, "layers": 3, "heads": 4}, whole_past
    ),
    "rnn": Card("Elman (1990)", "none printed; ours for Nottingham", {"d_model": 256, "layers": 1}, whole_past),
    "gru": Card("Cho et al. (2014)", "none printed; ours for Nottingham", {"d_model": 256, "layers": 1}, whole_past),
    "lstm": Card(
        "Hochreiter & Schmidhuber (1997)", "Wang et al., Table 4, words", {"d_model": 700, "layers": 3}, whole_past
    ),
}
"""One card for each name in `rtx.models.MODELS`."""
