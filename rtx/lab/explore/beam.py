"""Explorer of beam search: every prefix that stood on the beam as a tree, the hypotheses, and where each one looked.

Xu et al. (2019), MC-RNN, translate with a beam of 5; Wu et al. (2016), §7, normalise by length.
"""

from collections.abc import Sequence
from functools import cache

import ipywidgets as widgets
import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from torch import nn

from rtx.lab.beam_tree import BeamTree, places, search
from rtx.lab.explore.explorer import Explorer
from rtx.lab.explore.words import Words
from rtx.lab.plots import COLOURS, freeze, whole_numbers
from rtx.nn.mode import evaluating
from rtx.tasks.subwords import BEGIN, END
from rtx.tasks.task import Text

WIDEST, LONGEST = 5, 40  # of a beam; tokens of a hypothesis
GREY = (0.4, 0.4, 0.4)
ROOM = 150  # points along the alignment's axes that type may take
ALPHAS = (0.0, 0.5, 1.0, 1.5)


def beam(model: nn.Module, texts: Sequence[Text], source: str, width: int = 3) -> Explorer:
    """A search for the translation of `source`, with controls `width`, `alpha` and `hypothesis`.

    Args:
        model: one of `rtx.models.TRANSLATORS`, trained or not.
        texts: how it reads sources and writes targets, as a task's `texts`.
        source: a sentence.
        width: of the beam, at first.

    Raises:
        ValueError: if the source has no token, `texts` are not those of the model, or the width is not from 1 to 5.
    """
    reader, writer = texts
    if (reader.size, writer.size) != (model.source_vocabulary, model.target_vocabulary):
        raise ValueError(
            f"texts: expected those of the model's vocabularies, got {reader.size} and {writer.size} tokens"
        )
    if width not in range(1, WIDEST + 1):
        raise ValueError(f"width: expected a whole number from 1 to {WIDEST}, got {width!r}")
    tokens = reader.encode(source)
    if not tokens:
        raise ValueError(f"source: expected a sentence, got {source!r}")
    picture = _Picture([_word(reader, token) for token in (*tokens, END)])
    most = min(LONGEST, 2 * len(tokens) + 10)
    which = widgets.IntSlider(1, 1, WIDEST, description="hypothesis")

    @cache
    def tree(width: int, alpha: float) -> BeamTree:
        return search(model, tokens, width, alpha, most)

    @cache
    def looked(prefix: tuple[int, ...]) -> torch.Tensor:
        device = next(model.parameters()).device
        read, written = (torch.tensor([one], device=device) for one in ([*tokens, END], [BEGIN, *prefix[:-1]]))
        with torch.no_grad(), evaluating(model):
            return model.align(read, written)[0].float().cpu()  # type: ignore[operator]

    def update(width: int, alpha: float, hypothesis: int) -> str:
        found = tree(width, alpha)
        which.max, which.disabled = max(2, len(found.found)), len(found.found) == 1  # a slider of one value breaks
        place = min(hypothesis, len(found.found)) - 1
        chosen = found.found[place]
        picture.show_tree(found, chosen, writer)
        picture.show_looks(looked(chosen), [_word(writer, token) for token in chosen])
        return _sentence(found, place, writer)

    return Explorer(
        picture.figure,
        update,
        "widen the beam from 1 and see when the best hypothesis changes; set alpha to 0: are shorter ones preferred?",
        width=widgets.IntSlider(width, 1, WIDEST, description="beam width"),
        alpha=widgets.SelectionSlider(options=ALPHAS, value=1.0, description="alpha"),
        hypothesis=which,
    )


def _word(text: Text, token: int) -> str:
    return "end" if token == END else text.decode([token]) or "·"


def _sentence(tree: BeamTree, place: int, writer: Text) -> str:
    ranked = "; ".join(
        f"{i}. “{writer.decode(list(prefix))}” ({score:z.2f})"
        for i, (prefix, score) in enumerate(zip(tree.found, tree.scores, strict=True), 1)
    )
    extended = len(tree.live) - 1
    begun = "1 prefix was extended" if extended == 1 else f"{extended} prefixes were extended"
    return f"{begun}. {ranked}. On the right: where hypothesis {place + 1} looked."


def _size(labels: list[str]) -> float:
    """Points that so many labels have room for, one below the other."""
    return min(8.0, ROOM / len(labels))


def _branch(step: int, start: float, end: float) -> list[tuple[float, float]]:
    """From a node to the next one: up or down at once, then level, so that the token stands free above."""
    return [(step - 1, start), (step - 0.92, end), (step, end)]


class _Picture:
    """Left, the tree, a step to the right per token; right, the alignment of one hypothesis."""

    def __init__(self, source: list[str]) -> None:
        fixed = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)  # to find one takes long
        self.figure = Figure(figsize=(10, 4), layout=fixed)
        self.tree, self.looks = self.figure.subplots(1, 2, width_ratios=(2.2, 1))
        self.figure.subplots_adjust(left=0.02, right=0.985, bottom=0.22, top=0.9, wspace=0.2)
        self.lines = self.tree.add_collection(LineCollection([], linewidths=1.2))
        self.words = Words(self.tree)
        self.tree.set(
            yticks=[],
            xlabel="tokens written",
            title="blue: complete; orange: chosen; grey: given up",
        )
        whole_numbers(self.tree.xaxis)
        self.tree.spines["left"].set_visible(False)
        self.image = self.looks.imshow(np.zeros((1, len(source))), aspect="auto", vmin=0, vmax=1, cmap="Blues")
        self.looks.set_xticks(range(len(source)), source, rotation=90, fontsize=_size(source), parse_math=False)
        self.looks.set(title="where it looked: white 0, dark 1")
        freeze(self.figure)

    def show_tree(self, tree: BeamTree, chosen: tuple[int, ...], writer: Text) -> None:
        """Every node with its token; what led to a complete hypothesis in colour."""
        nodes = tree.nodes()
        heights = places(nodes)
        whole = {prefix[:i] for prefix in tree.found for i in range(len(prefix) + 1)}
        path = {chosen[:i] for i in range(len(chosen) + 1)}
        ends = [node for node in nodes if node]
        shades = [COLOURS[1] if node in path else COLOURS[0] if node in whole else GREY for node in ends]
        self.lines.set_segments([_branch(len(node), heights[node[:-1]], heights[node]) for node in ends])
        self.lines.set_color(shades)
        self.words.write(
            [_word(writer, node[-1]) for node in ends], [(len(node) - 0.32, heights[node]) for node in ends], shades
        )
        self.tree.set_xlim(-0.2, max(len(node) for node in nodes) + 0.6)
        self.tree.set_ylim(max(heights.values()) + 0.7, -0.7)

    def show_looks(self, weights: torch.Tensor, target: list[str]) -> None:
        """The alignment (T, S) of the chosen hypothesis."""
        self.image.set_data(weights.numpy())
        self.image.set_extent((-0.5, weights.shape[1] - 0.5, len(target) - 0.5, -0.5))
        self.looks.set_yticks(range(len(target)), target, fontsize=_size(target), parse_math=False)
