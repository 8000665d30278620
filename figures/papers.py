"""The figures of the papers, drawn again from models that run: an arrow is a gradient that is not zero."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import mean

import torch
from drawing import new_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import nn

from rtx import FeedForwardAttention
from rtx.evidence.selection import seeds
from rtx.evidence.tables import cells
from rtx.lab import receptive_field, trace, xray
from rtx.lab.learning import learn
from rtx.lab.plots import COLOURS
from rtx.models import MCRNN, RNN, CharacterTransformer, LanguageModel, TransformerXL
from rtx.models.griffin import GatedFeedForward, RecurrentBlock
from rtx.nn import LocalRNN, MultiHeadAttention
from rtx.nn.blocks import FeedForward
from rtx.nn.local_attention import LocalAttention
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.tasks import task_by_name
from rtx.tasks.loader import loader
from rtx.training.recipe import load_recipe

LEDGER = Path(__file__).parents[1] / "results"
WIDTH, STEPS, WINDOW = 8, 8, 3


def r_transformer_1() -> Figure:
    """One layer of the R-Transformer: which positions each sublayer connects."""
    torch.manual_seed(0)
    layers = {
        "LocalRNN": LocalRNN(WIDTH, WINDOW),
        "attention": MultiHeadAttention(WIDTH, 2),
        "feed-forward": FeedForward(WIDTH),
    }
    figure, [ax] = new_figure(7.2, 3.6)
    for row, (colour, layer) in enumerate(zip(COLOURS, layers.values(), strict=False)):
        _connect(ax, layer, row, colour, last_only=row < 2)
    _nodes(ax, ["x", *layers])
    ax.set_title("one layer: what reaches each position, the last one in bold")
    return figure


def r_transformer_2() -> Figure:
    """A recurrent network over the whole sequence beside a LocalRNN."""
    torch.manual_seed(0)
    figure, axes = new_figure(9, 2.2, columns=2)
    models = {
        "RNN: one state for all of the past": RNN(WIDTH, 1, "rnn"),
        f"LocalRNN, M = {WINDOW}": LocalRNN(WIDTH, WINDOW, "rnn"),
    }
    for ax, colour, (title, model) in zip(axes, COLOURS, models.items(), strict=False):
        _connect(ax, model, 0, colour)
        _nodes(ax, ["x", "h"])
        ax.set_title(title)
    return figure


def griffin_1() -> Figure:
    """Two blocks of the R-Transformer beside three blocks of Griffin: which positions each sublayer connects."""
    torch.manual_seed(0)
    recurs, attends, alone = COLOURS[0], COLOURS[1], "0.6"
    block = [
        ("LocalRNN", recurs, LocalRNN(WIDTH, WINDOW)),
        ("attention", attends, MultiHeadAttention(WIDTH, 2)),
        ("feed-forward", alone, FeedForward(WIDTH)),
    ]
    network = ("gated network", alone, GatedFeedForward(WIDTH))
    recurrent = ("recurrent block", recurs, RecurrentBlock(WIDTH, 2))
    attention = ("local attention", attends, LocalAttention(WIDTH, 2, WINDOW))
    stacks = {
        "R-Transformer, two blocks": block + block,
        "Griffin, three blocks": [recurrent, network, recurrent, network, attention, network],
    }
    figure, axes = new_figure(10, 5, columns=2)
    for ax, (title, layers) in zip(axes, stacks.items(), strict=True):
        for row, (_, colour, layer) in enumerate(layers):
            _connect(ax, layer, row, colour, last_only=colour != alone)
        _nodes(ax, ["x", *(name for name, _, _ in layers)])
        ax.set_title(title)
    return figure


def mc_rnn_1() -> Figure:
    """Three channels and their blocks."""
    figure, [ax] = new_figure(7.2, 2.6)
    _channels(ax, None)
    ax.set_title("MC-RNN, n = 4: blocks of three channels; in a node its in-degree, Eq. 1")
    return figure


def mc_rnn_2() -> Figure:
    """What each channel reads at two steps that follow each other."""
    figure, axes = new_figure(9.6, 2.6, columns=2)
    for ax, step in zip(axes, (6, 7), strict=True):
        _channels(ax, step)
        ax.set_title(f"what is read at step {step}")
    return figure


def mc_rnn_3() -> Figure:
    """The weights that a trained layer gives its channels over a sentence: notebook 08's model, of common words."""
    sentence = "the value of the expression is not a list of the class , and so on"
    task = task_by_name("words", least=30, context=8, scored=32)
    torch.manual_seed(1)
    model = LanguageModel(MCRNN(24, block=4, cell="gru"), task.inputs)
    updates = 4 * len(loader(task, "train", 32))
    for _ in islice(learn(task, model, 0.01, clip=None), updates):
        pass
    found = trace(model.eval(), torch.tensor([task.texts[0].encode(sentence)]))
    weights = found["backbone.layers.0.channel_weights"][0]
    figure, [ax] = new_figure(7.2, 2.2)
    image = ax.imshow(weights.T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(sentence.split())), sentence.split(), rotation=40, ha="right")
    ax.set(yticks=range(3), yticklabels=[1, 2, 3], ylabel="channel", title="MC-RNN, n = 4: the weight of each channel")
    figure.colorbar(image, ax=ax, label="weight")
    return figure


def mc_rnn_4() -> Figure:
    """BLEU by the length of the source, of the translators in the ledger."""
    figure, [ax] = new_figure(6.4, 2.6)
    shown = {name: groups[0] for name, groups in cells(load_recipe("multi30k"), LEDGER).items() if groups}
    for place, (name, runs) in enumerate(shown.items()):
        lengths = [key.removeprefix("BLEU, ") for key in runs[0].details if key.startswith("BLEU, ")]
        scores = [mean(run.details[f"BLEU, {length}"] for run in runs) for length in lengths]
        at = [i + 0.8 * (place + 0.5) / len(shown) - 0.4 for i in range(len(lengths))]
        label = f"{name}, {runs[0].scale}, {seeds(runs)}"
        ax.bar(at, scores, width=0.7 / len(shown), color=COLOURS[place], label=label)
        ax.set_xticks(range(len(lengths)), lengths)
    ax.set(xlabel="words in the source", ylabel="BLEU", title="Multi30k, test")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def feed_forward_attention_1() -> Figure:
    """Each step becomes a state by itself; the context is their mean by weights that a model gives them."""
    torch.manual_seed(1)
    model = FeedForwardAttention(2, leak="coded")
    nn.init.normal_(model.score.weight, std=0.5)  # so that weights differ to the eye
    x = 2 * torch.randn(1, STEPS, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        weights = model.weights(x)[0].tolist()
    figure, [ax] = new_figure(7.2, 3.0)
    middle = (STEPS + 1) / 2
    for t, weight in enumerate(weights, 1):
        ax.plot([t, t], [0, 1], color="0.6", linewidth=1, zorder=1)
        ax.plot([t, middle], [1, 2], color=COLOURS[0], linewidth=30 * weight, alpha=0.7, zorder=1)
        ax.annotate(f"α = {weight:.2f}", (t, 1), (0, -14), textcoords="offset points", ha="left", fontsize=8)
    _nodes(ax, ["x", "h"])
    ax.scatter(middle, 2, s=260, color="white", edgecolor="0.3", zorder=3)
    ax.text(middle, 2, "c", ha="center", va="center", zorder=4)
    ax.set(ylim=(-0.4, 2.4), title="feed-forward attention: line width is the weight of a state in the context")
    return figure


def transformer_xl_1() -> Figure:
    """Three ways to read a text in pieces of 8: which characters one output of one layer sees."""
    text, at, length = "attention reads in pieces", 16, 8
    torch.manual_seed(0)
    x = torch.randn(1, len(text), WIDTH)
    separate = CharacterTransformer(WIDTH, 1, 2, length)
    rows = {
        "separate\nsegments": separate,
        "segments\nwith memory": TransformerXL(WIDTH, 1, 2, length, length),
        "sliding\nsegment": Called(separate.slide),
    }
    own, memory, unseen = COLOURS[0], COLOURS[1], "0.93"
    inks = {own: "white", memory: "black", unseen: "0.4"}
    figure, [ax] = new_figure(9, 3.1)
    for row, (name, model) in enumerate(rows.items()):
        learns, sees = receptive_field(model, x)[at] > 0, xray(model, x).changed[at]
        slides = name.startswith("sliding")
        for s, letter in enumerate(text):
            colour = own if learns[s] else memory if sees[s] else unseen
            box = Rectangle((s - 0.42, row - 0.3), 0.84, 0.6, facecolor=colour, edgecolor="white")
            if s == at:
                box.set(edgecolor="black", linewidth=3, zorder=3)
            ax.add_patch(box)
            ink, letter = ("black", "?") if s == at + 1 else (inks[colour], letter)
            ax.text(s, row, letter, ha="center", va="center", color=ink, family="monospace", zorder=4)
        for start in [at - length + 1] if slides else range(0, len(text) - 1, length):
            around = (start - 0.49, row - 0.4), length - 0.02, 0.8
            ax.add_patch(Rectangle(*around, facecolor="none", edgecolor="0.3", linewidth=1.5, zorder=2))
        if slides:
            ax.text(at + 0.6, row + 0.55, "moves on by one →", va="center", fontsize=9)
        ax.text(len(text) - 0.2, row, f"sees {int(sees.sum())}", va="center", fontsize=10)
    names = "seen, in the same segment", "seen, in the memory", "not seen"
    patches = [Rectangle((0, 0), 1, 1, facecolor=colour) for colour in inks]
    ax.legend(patches, names, loc="upper center", bbox_to_anchor=(0.45, 0), ncols=3, frameon=False)
    ax.set(xlim=(-0.7, len(text) + 1.6), ylim=(2.7, -0.6), xticks=())
    ax.set_title("the first output of a segment sees more with a memory, or if the segment slides")
    ax.set_yticks(range(3), rows)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return figure


class Called(nn.Module):
    """A function of a sequence, as a module."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call it."""
        return self.function(x)


def _connect(ax: Axes, layer: nn.Module, row: int, colour: object, last_only: bool = False) -> None:
    """A line from input s to output t wherever the one moves the other."""
    strength = receptive_field(layer, torch.randn(1, STEPS, WIDTH, generator=torch.Generator().manual_seed(0)))
    for t in range(STEPS):
        for s in (strength[t] > 0).nonzero().flatten().tolist():
            strong = not last_only or t == STEPS - 1
            ax.plot(
                [s + 1, t + 1],
                [row, row + 1],
                color=colour,
                linewidth=1.6 if strong else 0.5,
                alpha=1 if strong else 0.35,
            )


def _nodes(ax: Axes, rows: list[str]) -> None:
    for row in range(len(rows)):
        ax.scatter(range(1, STEPS + 1), [row] * STEPS, s=90, color="white", edgecolor="0.3", zorder=3)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(1, STEPS + 1))
    ax.set(xlabel="position", ylim=(-0.4, len(rows) - 0.6))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _channels(ax: Axes, step: int | None) -> None:
    """Channels below one another: blocks as links of a chain, in-degrees as numbers, and what one step reads."""
    in_degrees = MultiChannelRNN(WIDTH, block=4).in_degrees(9)
    T, P = in_degrees.shape
    for k in range(1, P + 1):
        first = 1 - int(in_degrees[0, k - 1])  # the block that step 1 stands in begins there
        for begin in range(first, T, P):
            link = FancyBboxPatch((begin - 0.25, k - 0.22), P + 0.5, 0.44, boxstyle="round,pad=0.06")
            link.set(edgecolor="0.6", facecolor=(0, 0, 0, 0.06), linewidth=0.9)
            ax.add_patch(link)
        for t, m in enumerate(in_degrees[:, k - 1].tolist(), 1):
            ax.scatter(t, k, s=120, color="white", edgecolor="0.3", linewidth=0.8, zorder=3)
            ax.text(t, k, str(m), ha="center", va="center", fontsize=8, zorder=4)
            look = {"arrowstyle": "->", "color": COLOURS[1], "connectionstyle": "arc3,rad=-0.4", "linewidth": 1.4}
            for s in range(max(1, t - m), t) if t == step else ():
                ax.annotate("", (t, k - 0.12), (s, k - 0.12), arrowprops=look, zorder=5)
    ax.set(xlim=(0.4, T + 0.6), ylim=(P + 0.6, 0.3), yticks=range(1, P + 1), ylabel="channel k")
    ax.set(xticks=range(1, T + 1), xlabel="step t")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


PAPERS: dict[str, Callable[[], Figure]] = {
    "r_transformer_1": r_transformer_1,
    "r_transformer_2": r_transformer_2,
    "griffin_1": griffin_1,
    "mc_rnn_1": mc_rnn_1,
    "mc_rnn_2": mc_rnn_2,
    "mc_rnn_3": mc_rnn_3,
    "mc_rnn_4": mc_rnn_4,
    "transformer_xl_1": transformer_xl_1,
    "feed_forward_attention_1": feed_forward_attention_1,
}
