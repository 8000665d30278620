"""Explorer of MC-RNN's channels: how they cut a sentence into blocks, and which of them the attention prefers.

Xu et al. (2019), MC-RNN, Eq. 1-6 and Figures 1-3. The layer's arithmetic runs in the page, in channels.js.
"""

from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from rtx.lab.explore.page import Page, packed
from rtx.lab.plots import COLOURS, new_figure
from rtx.models import MCRNN, LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks.vocabulary import CUTS, UNKNOWN, Vocabulary

SENTENCE = "Home-grown champions have been few and far between at the Italian Open ."
LARGEST = 8  # n
MOST = 24  # tokens shown
WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_block")


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
    tokens = shown_tokens(text, vocabulary)
    if not tokens:
        raise ValueError(f"text: expected at least one word, got {text!r}")
    data: dict[str, Any] = {"most": MOST, "unit": "words"}
    step, weights, wiring = min(8, len(tokens)), None, MultiChannelRNN(1)
    if model is not None and vocabulary is not None:
        layer = first_layer(model)
        check_vocabulary(model, vocabulary)
        data |= {"unit": vocabulary.unit, "symbols": list(vocabulary.symbols), "unknown": UNKNOWN}
        data |= {"embedding": packed(model.embedding.weight.detach()), "layer": layer_data(layer)}
        weights, wiring = channel_weights(model, vocabulary, text), layer
    n = wiring.predecessors + 1
    figure, (ax,) = new_figure(7, 1.2 + 0.36 * n)
    # of Eq. 1, as in the page, also where the layer counts no steps before the start: blocks begin where that says
    drawn = MultiChannelRNN(1, block=n, phase=wiring.phase).in_degrees(len(tokens))
    draw_channels(ax, tokens, drawn, step, weights)
    ax.set_title("in a circle: m of Eq. 1" + ("; the darker, the larger the channel's weight" if model else ""))
    data["largest"] = max(LARGEST, n)
    caption = "step through the sentence: what does each channel join? Then change n" + (
        "; type another sentence, and put a word in front of it" if model else ""
    )
    return Page(
        Path(__file__).with_name("channels.js"),
        data,
        figure,
        caption,
        title="What does a channel join?",
        n=n,
        step=step,
        text=text,
    )


def shown_tokens(text: str, vocabulary: Vocabulary | None) -> list[str]:
    """The first tokens of a text, as the page cuts it."""
    return list(CUTS[vocabulary.unit if vocabulary else "words"](text))[:MOST]


def first_layer(model: LanguageModel) -> MultiChannelRNN:
    """The first multi-channel layer of a language model.

    Raises:
        ValueError: if it has none, or one with switches that channels.js does not know.
    """
    if not isinstance(model, LanguageModel):
        raise ValueError(f"model: expected a LanguageModel over an MCRNN, got {type(model).__name__}")
    if not isinstance(model.backbone, MCRNN):
        raise ValueError(f"model: expected a LanguageModel over an MCRNN, got one over {type(model.backbone).__name__}")
    layer = cast(MultiChannelRNN, model.backbone.layers[0])
    if (layer.mapping, layer.cell_state) != ("shared", "mean"):
        found = f"mapping {layer.mapping!r} and cell_state {layer.cell_state!r}"
        raise ValueError(f"model: expected mapping 'shared' and cell_state 'mean', got {found}")
    return layer


def check_vocabulary(model: LanguageModel, vocabulary: Vocabulary) -> None:
    """Check that the vocabulary is as large as the model's, and knows <unk>.

    Raises:
        ValueError: otherwise.
    """
    if vocabulary.size != model.vocabulary:
        raise ValueError(f"vocabulary: expected {model.vocabulary} symbols for this model, got {vocabulary.size}")
    if UNKNOWN not in vocabulary.numbers:
        raise ValueError(f"vocabulary: expected one with {UNKNOWN}, for what a reader may type")


def layer_data(layer: MultiChannelRNN) -> dict[str, Any]:
    """What channels.js needs to run the layer."""
    found = {name: packed(getattr(layer, name).detach()) for name in WEIGHTS}
    v, r = layer.attention_v.weight.detach(), layer.attention_r.weight.detach()[0]
    switches = {"n": layer.predecessors + 1, "cell": layer.cell, "start": layer.start, "phase": layer.phase}
    return found | switches | {"v": packed(v), "r": packed(r)}


def channel_weights(model: LanguageModel, vocabulary: Vocabulary, text: str) -> Float[Tensor, "T C"]:
    """α_t^k of the first layer for the tokens shown."""
    numbers = torch.tensor([vocabulary.encode(text)[:MOST]], device=model.embedding.weight.device)
    with torch.no_grad(), evaluating(model):
        return first_layer(model).introspect(model.embed(numbers))["channel_weights"][0].cpu()


def draw_channels(
    ax: Axes,
    tokens: list[str],
    in_degrees: Int[Tensor, "T C"],
    step: int | None = None,
    weights: Float[Tensor, "T C"] | None = None,
) -> None:
    """Channels below one another: blocks as links of a chain, in-degrees as numbers, weights as blue.

    Args:
        ax: where to draw.
        tokens: the sentence.
        in_degrees: m_t^k, from 1 to the number of channels.
        step: of which to show the edges; none if not given.
        weights: α_t^k, if known.
    """
    T, P = in_degrees.shape
    for k in range(1, P + 1):
        first = 1 - int(in_degrees[0, k - 1])  # the block that step 1 stands in begins there
        for begin in range(first, T, P):
            link = FancyBboxPatch((begin - 0.25, k - 0.22), P + 0.5, 0.44, boxstyle="round,pad=0.06")
            link.set(edgecolor="0.6", facecolor=(0, 0, 0, 0.06), linewidth=0.9)
            ax.add_patch(link)
        for t in range(1, T + 1):
            share = 0.0 if weights is None else float(weights[t - 1, k - 1])
            ax.scatter(t, k, s=120, color="white", edgecolor="0.3", linewidth=0.8, zorder=3)
            ax.scatter(t, k, s=120, color=(*COLOURS[0], share), edgecolor="none", zorder=3)
            m = int(in_degrees[t - 1, k - 1])
            ax.text(t, k, str(m), ha="center", va="center", fontsize=8, zorder=4, color="w" if share > 0.6 else "k")
            if t == step:
                _edges(ax, t, k, m)
    ax.set(xlim=(0.4, T + 0.6), ylim=(P + 0.6, 0.3), yticks=range(1, P + 1), ylabel="channel k")
    ax.set_xticks(range(1, T + 1), tokens, rotation=35, ha="right", fontsize=8, parse_math=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _edges(ax: Axes, t: int, k: int, m: int) -> None:
    look = {"arrowstyle": "->", "color": COLOURS[1], "connectionstyle": "arc3,rad=-0.4", "linewidth": 1.4}
    for s in range(max(1, t - m), t):
        ax.annotate("", (t, k - 0.12), (s, k - 0.12), arrowprops=look, zorder=5)
