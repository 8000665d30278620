"""Explorer of MC-RNN's channels: how they cut a sentence into blocks, and which of them the attention prefers.

Xu et al. (2019), MC-RNN, Eq. 1-6 and Figures 1-3. The layer's arithmetic runs in the page, in channels.js.
"""

from typing import Any, cast

from safetensors.torch import save

from rtx.lab.explore.page import Page
from rtx.models import MCRNN, LanguageModel
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks.vocabulary import UNKNOWN, Vocabulary

SENTENCE = "Home-grown champions have been few and far between at the Italian Open ."
PAPERS_N, LARGEST = 4, 8  # n of Figure 3, and the largest to choose
MOST = 24  # tokens shown
SWITCHES = {"start": "equation", "phase": "equation"}
"""What channels.js computes: the values that an MC-RNN has by default."""


def channels(model: LanguageModel | None = None, vocabulary: Vocabulary | None = None, text: str = SENTENCE) -> Page:
    """The blocks of a sentence to type, with controls `n`, `step` and `text`; with a model, its channels' weights.

    The weights are those of the model's first layer, computed in the page, and shown where n is the model's own.

    Args:
        model: a language model over an MC-RNN with the switches that it has by default.
        vocabulary: its own, with <unk> for what it does not know, such as `task.texts[0]`.
        text: the sentence at the start; its first 24 tokens are shown.

    Raises:
        ValueError: if only one of model and vocabulary is given, they do not fit, or the model is of another kind.
    """
    if (model is None) != (vocabulary is None):
        raise ValueError("vocabulary: expected one with the model, and none without: it numbers what is typed")
    data: dict[str, Any] = {"most": MOST, "unit": vocabulary.unit if vocabulary else "words"}
    n, weights = PAPERS_N, b""
    if model is not None and vocabulary is not None:
        layer = first_layer(model, vocabulary)
        n = layer.predecessors + 1
        data |= {"symbols": vocabulary.symbols, "layer": {"cell": layer.cell, "n": n}}
        weights = save(layer.state_dict() | {"embedding.weight": model.embedding.weight.detach().half()})
    data["largest"] = max(LARGEST, n)
    caption = "step through the sentence: what does each channel join? Then change n" + (
        "; type another sentence, and put a word in front of it" if model else ""
    )
    return Page(
        "channels.js",
        data,
        caption,
        title="What does a channel join?",
        weights=weights,
        n=n,
        step=8,
        text=text,
    )


def first_layer(model: LanguageModel, vocabulary: Vocabulary) -> MultiChannelRNN:
    """The first multi-channel layer of a language model.

    Raises:
        ValueError: if it has none, or one with switches that channels.js does not know, or another vocabulary.
    """
    backbone = getattr(model, "backbone", model)
    if not isinstance(model, LanguageModel) or not isinstance(backbone, MCRNN):
        raise ValueError(f"model: expected a LanguageModel over an MCRNN, got one of {type(backbone).__name__}")
    layer = cast(MultiChannelRNN, backbone.layers[0])
    switches = {name: getattr(layer, name) for name in SWITCHES}
    if switches != SWITCHES:
        raise ValueError(f"model: expected an MCRNN with {SWITCHES}, got {switches}")
    if vocabulary.size != model.vocabulary or UNKNOWN not in vocabulary.numbers:
        raise ValueError(f"vocabulary: expected {model.vocabulary} symbols with {UNKNOWN}, got {vocabulary.size}")
    return layer
