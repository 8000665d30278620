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

from rtx.lab.explore.page import Page
from rtx.lab.plots import new_figure
from rtx.models import MCRNN, LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks.vocabulary import CUTS, UNKNOWN, Vocabulary

SENTENCE = "Home-grown champions have been few and far between at the Italian Open ."
LARGEST = 8  # n
MOST = 24  # tokens shown


def channels(model: LanguageModel | None = None, vocabulary: Vocabulary | None = None, text: str = SENTENCE) -> Page:
    """The blocks of a sentence to type, with controls `n`, `step` and `text`; with a model, its channels' weights.

    The weights are those of the model's first layer, computed in the page, and shown where n is the model's own.

    Args:
        model: a language model over an MC-RNN, with W_j shared by the gates and the mean of c, as they are by default.
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
    tensors: dict[str, Tensor] = {}
    shown: Tensor | None = None
    wiring = MultiChannelRNN(1)
    if model is not None and vocabulary is not None:
        wiring = first_layer(model, vocabulary)
        switches = {name: getattr(wiring, name) for name in ("cell", "start", "phase")}
        data |= {"symbols": list(vocabulary.symbols), "unknown": UNKNOWN}
        data["layer"] = switches | {"n": wiring.predecessors + 1}
        tensors = wiring.state_dict() | {"embedding.weight": model.embedding.weight.detach().half()}
        shown = channel_weights(model, vocabulary, text)
    n = wiring.predecessors + 1
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
        weights=save({name: one.contiguous() for name, one in tensors.items()}) if tensors else b"",
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
    if (layer.mapping, layer.cell_state) != ("shared", "mean"):
        found = f"mapping {layer.mapping!r} and cell_state {layer.cell_state!r}"
        raise ValueError(f"model: expected mapping 'shared' and cell_state 'mean', got {found}")
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected {model.vocabulary} symbols for this model, got {vocabulary.size}")
    if UNKNOWN not in vocabulary.numbers:
        raise ValueError(f"vocabulary: expected one with {UNKNOWN}, for what a reader may type")
    return layer


def channel_weights(model: LanguageModel, vocabulary: Vocabulary, text: str) -> Float[Tensor, "T C"]:
    """α_t^k of the first layer for the tokens shown."""
    numbers = torch.tensor([vocabulary.encode(text)[:MOST]], device=model.embedding.weight.device)
    with torch.no_grad(), evaluating(model):
        return first_layer(model, vocabulary).introspect(model.embed(numbers))["channel_weights"][0].cpu()


def _still(tokens: list[str], in_degrees: Int[Tensor, "T C"], weights: Float[Tensor, "T C"] | None) -> Figure:
    """A row of cells for each channel: m_t^k in each, the darker, the larger its weight."""
    T, C = in_degrees.shape
    figure, [ax] = new_figure(7, 1.2 + 0.36 * C)
    ax.imshow(
        (torch.zeros(T, C) if weights is None else weights).T.numpy(), aspect="auto", cmap="Blues", vmin=0, vmax=1.6
    )
    for t, row in enumerate(in_degrees.tolist()):
        for k, m in enumerate(row):
            ax.text(t, k, str(m), ha="center", va="center")
    ax.set(yticks=range(C), yticklabels=range(1, C + 1), ylabel="channel k")
    ax.set_title("m: how many earlier states a state reads")
    ax.set_xticks(range(T), tokens, rotation=35, ha="right", fontsize=8, parse_math=False)
    return figure
