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
            where it is the whole past (and, for a translator, the whole source). A test measures it.
    """

    paper: str
    table: str
    sizes: dict[str, Any]
    reach: Callable[..., int | None]


def whole_past(**hyperparameters: object) -> None:
    """The reach of a model that forgets nothing by construction."""


def r_transformer_reach(
    layers: int, heads: int, window: int, local_layers: int = 1, **hyperparameters: object
) -> int | None:
    """The whole past by its attention; without any, what its windows reach, one above the other."""
    return None if heads else 1 + layers * local_layers * (window - 1)


def tcn_reach(layers: int, kernel: int = 3, **hyperparameters: object) -> int:
    """Two convolutions a block, the dilation doubling from block to block."""
    return 1 + 2 * (kernel - 1) * (2**layers - 1)


def segment_reach(segment: int = 512, **hyperparameters: object) -> int:
    """Of a segment's last output: its segment."""
    return segment


def segments_reach(layers: int, segment: int = 32, memory: int = 32, **hyperparameters: object) -> int:
    """Of a segment's last output: each layer below sees a memory further back than a segment's start."""
    return segment + (layers - 1) * segment * -(-memory // segment) + memory


CARDS: dict[str, Card] = {
    "r-transformer": Card(
        "Wang et al. (2019)",
        "Table 2, Nottingham",
        {"d_model": 160, "layers": 3, "heads": 4, "window": 6},
        r_transformer_reach,
    ),
    "transformer": Card(
        "Vaswani et al. (2017)", "Wang et al., Table 2", {"d_model": 160, "layers": 3, "heads": 4}, whole_past
    ),
    "transformer-xl": Card(
        "Dai et al. (2019)",
        "Table 2, enwik8, 12 layers",
        {"d_model": 512, "layers": 12, "heads": 8, "segment": 512, "memory": 512},
        segments_reach,
    ),
    "character-transformer": Card(
        "Al-Rfou et al. (2019)",
        "T12, enwik8; the heads are ours",
        {"d_model": 512, "layers": 12, "heads": 8, "segment": 512},
        segment_reach,
    ),
    "tcn": Card(
        "Bai, Kolter & Koltun (2018)",
        "Wang et al., Table 2, Nottingham",
        {"d_model": 150, "layers": 4, "kernel": 5},
        tcn_reach,
    ),
    "rnn": Card("Elman (1990)", "none printed; ours for Nottingham", {"d_model": 256, "layers": 1}, whole_past),
    "gru": Card("Cho et al. (2014)", "none printed; ours for Nottingham", {"d_model": 256, "layers": 1}, whole_past),
    "lstm": Card(
        "Hochreiter & Schmidhuber (1997)", "Wang et al., Table 4, words", {"d_model": 700, "layers": 3}, whole_past
    ),
    "awd-lstm": Card(
        "Merity, Keskar & Socher (2018)",
        "PTB words; Xu et al., Table 4",
        {"d_model": 400, "layers": 3, "d_hidden": 1150},
        whole_past,
    ),
    "mc-rnn": Card(
        "Xu et al. (2019)",
        "Table 4, PTB words",
        {"d_model": 400, "layers": 3, "d_hidden": 1150, "block": 4},
        whole_past,
    ),
    "ho-rnn": Card(
        "Soltani & Jiang (2016)",
        "Xu et al., Table 2, IWSLT14; the order is ours",
        {"d_model": 256, "layers": 2, "order": 4},
        whole_past,
    ),
    "hm-rnn": Card("Chung, Ahn & Bengio (2017)", "Table 1, PTB characters", {"d_model": 512, "layers": 3}, whole_past),
    "griffin": Card(
        "De et al. (2024)",
        "ours; the paper's begin at 100M parameters",
        {"d_model": 160, "layers": 3, "heads": 4, "window": 64},
        whole_past,
    ),
    "feed-forward-attention": Card(
        "Raffel & Ellis (2015)", "§2.1", {"d_hidden": 100, "pooling": "attention"}, whole_past
    ),
    "rnnsearch": Card(
        "Bahdanau, Cho & Bengio (2015)",
        "Xu et al., Table 2, IWSLT14, baseline",
        {"source_vocabulary": 25_000, "target_vocabulary": 25_000, "recurrent": "lstm", "d_model": 256, "layers": 2},
        whole_past,
    ),
    "encoder-decoder": Card(
        "Vaswani et al. (2017)",
        "Table 3, base",
        {"source_vocabulary": 37_000, "target_vocabulary": 37_000, "d_model": 512, "layers": 6, "heads": 8},
        whole_past,
    ),
}
"""One card for each name in `rtx.models.MODELS`, `WHOLE` and `TRANSLATORS`, in their order."""
