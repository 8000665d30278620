"""Explorer of MC-RNN's channels: how they cut a sentence into blocks, and which of them the attention prefers.

Xu et al. (2019), MC-RNN, Eq. 1-6 and Figures 1-3. The layer's arithmetic runs in the page, in channels.js.
"""

from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from safetensors.torch import save
from torch import Tensor

from rtx.lab.explore.page import Page, maps
from rtx.models import MCRNN, LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks.vocabulary import CUTS, UNKNOWN, Vocabulary

SENTENCE = "Home-grown champions have been few and far between at the Italian Open ."
LARGEST = 8  # n
MOST = 24  # tokens shown
SWITCHES = {"start": "equation", "phase": "equation", "cell_state": "mean", "mapping": "shared"}
"""What channels.js computes: the values that an MC-RNN has by default."""


def channels(model: LanguageModel | None = None, vocabulary: Vocabulary | None = None, text: str = SENTENCE) -> Page:
    """The blocks of a sentence to type, with controls `n`, `step` and `text`; with a model, its channels' weights.

    The weights are those of the model's first layer, computed in the page, and shown where n is the model's own.

    Args:
        model: a language model over an MC-RNN with the switches that it has by default.
        vocabulary: its own, with <unk> for what it does not know, such as `task.texts[0]`.
        text: the sentence at the start; its first 24 tokens are shown.

    Raises:
        ValueError: if only one of model and vocabulary is given, they do not fit, the model is of another kind, or the
            text is empty.
    """
    if (model is None) != (vocabulary is None):
        raise ValueError("vocabulary: expected one with the model, and none without: it numbers what is typed")
    unit = vocabulary.unit if vocabulary else "words"
    tokens = list(CUTS[unit](text))[:MOST]
    if not tokens:
        raise ValueError(f"text: expected at least one word, got {text!r}")
    data: dict[str, Any] = {"most": MOST, "unit": unit}
    wiring, weights, shown = MultiChannelRNN(1), b"", torch.zeros(len(tokens), 3)
    n = wiring.predecessors + 1
    if model is not None and vocabulary is not None:
        wiring = first_layer(model, vocabulary)
        n = wiring.predecessors + 1
        data |= {"symbols": vocabulary.symbols, "layer": {"cell": wiring.cell, "n": n}}
        weights = save(wiring.state_dict() | {"embedding.weight": model.embedding.weight.detach().half()})
        shown = channel_weights(model, vocabulary, text)
    data["largest"] = max(LARGEST, n)
    caption = "step through the sentence: what does each channel join? Then change n" + (
        "; type another sentence, and put a word in front of it" if model else ""
    )
    return Page(
        Path(__file__).with_name("channels.js"),
        data,
        _still(tokens, wiring.in_degrees(len(tokens)), shown),
        caption,
        title="What does a channel join?",
        weights=weights,
        n=n,
        step=min(8, len(tokens)),
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
        raise ValueError(
            f"vocabulary: expected {model.vocabulary} symbols, one of them {UNKNOWN}, got {vocabulary.size}"
        )
    return layer


def channel_weights(model: LanguageModel, vocabulary: Vocabulary, text: str) -> Float[Tensor, "T C"]:
    """α_t^k of the first layer for the tokens shown."""
    numbers = torch.tensor([vocabulary.encode(text)[:MOST]], device=model.embedding.weight.device)
    with torch.no_grad(), evaluating(model):
        return first_layer(model, vocabulary).introspect(model.embed(numbers))["channel_weights"][0].cpu()


def _still(tokens: list[str], in_degrees: Int[Tensor, "T C"], weights: Float[Tensor, "T C"]) -> Figure:
    """A row of cells for each channel: m_t^k in each, the darker, the larger its weight."""
    T, C = in_degrees.shape
    title = "m: how many earlier states a state reads"
    figure = maps({title: weights.T}, "", "channel k", 1.2 + 0.36 * C, cmap="Blues", vmin=0, vmax=1.6)
    ax = figure.axes[0]
    for t, row in enumerate(in_degrees.tolist(), start=1):
        for k, m in enumerate(row, start=1):
            ax.text(t, k, str(m), ha="center", va="center")
    ax.set_xticks(range(1, T + 1), tokens, rotation=35, ha="right", fontsize=8, parse_math=False)
    return figure
