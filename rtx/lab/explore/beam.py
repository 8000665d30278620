"""Explorer of beam search: every prefix that stood on the beam as a tree, the hypotheses, and where each one looked.

Xu et al. (2019), MC-RNN, translate with a beam of 5; Wu et al. (2016), §7, normalise by length.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import nn

from rtx.lab.beam_tree import BeamTree, Prefix, places, search
from rtx.lab.explore.page import Page
from rtx.nn.mode import evaluating
from rtx.tasks.subwords import BEGIN, END
from rtx.tasks.task import Text

WIDTHS, LONGEST = range(1, 6), 40  # of a beam; tokens of a hypothesis
ALPHAS = (0.0, 0.5, 1.0, 1.5)


def beam(model: nn.Module, texts: Sequence[Text], source: str, width: int = 3) -> Page:
    """A search for the translation of `source`, with `width`, `alpha` and the chosen `hypothesis`.

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
    if width not in WIDTHS:
        raise ValueError(f"width: expected a whole number from 1 to {max(WIDTHS)}, got {width!r}")
    tokens = reader.encode(source)
    if not tokens:
        raise ValueError(f"source: expected a sentence, got {source!r}")
    most = min(LONGEST, 2 * len(tokens) + 10)
    trees = {f"{w} {a:g}": search(model, tokens, w, a, most) for w in WIDTHS for a in ALPHAS}
    found = {prefix for tree in trees.values() for prefix in tree.found}
    data = {
        "source": [_word(reader, token) for token in (*tokens, END)],
        "trees": {key: _drawn(tree, writer) for key, tree in trees.items()},
        "looks": {_key(prefix): _looked(model, tokens, prefix) for prefix in found},
        "alphas": ALPHAS,
    }
    return Page(
        Path(__file__).with_name("beam.js"),
        data,
        _still(trees[f"{width} 1"], writer),
        "widen the beam from 1 and see when the best hypothesis changes; set alpha to 0: are shorter ones preferred?",
        title="What does beam search look at?",
        presets={"Greedy": {"width": 1}, "Short ones preferred": {"width": 5, "alpha": 0.0}},
        width=width,
        alpha=1.0,
        hypothesis=1,
    )


def _word(text: Text, token: int) -> str:
    return "end" if token == END else text.decode([token]) or "·"


def _key(prefix: Prefix) -> str:
    return " ".join(map(str, prefix))


def _drawn(tree: BeamTree, writer: Text) -> dict[str, Any]:
    """A tree's nodes, each with its parent's place in the list, its depth and height, and the hypotheses."""
    nodes = tree.nodes()
    heights, number = places(nodes), {node: i for i, node in enumerate(nodes)}
    return {
        "nodes": [
            [_word(writer, node[-1]) if node else "", number[node[:-1]] if node else -1, len(node), heights[node]]
            for node in nodes
        ],
        "found": [
            {"text": writer.decode(list(prefix)), "score": score, "node": number[prefix], "look": _key(prefix)}
            for prefix, score in zip(tree.found, tree.scores, strict=True)
        ],
        "extended": len(tree.live) - 1,
    }


@torch.no_grad()
def _looked(model: nn.Module, source: list[int], prefix: Prefix) -> torch.Tensor:
    """The alignment (T, S) of a hypothesis, rounded to 1 %."""
    device = next(model.parameters()).device
    read, written = (torch.tensor([one], device=device) for one in ([*source, END], [BEGIN, *prefix[:-1]]))
    with evaluating(model):
        weights = model.align(read, written)[0].double().cpu()  # type: ignore[operator]
    return (weights * 100).round() / 100


def _still(tree: BeamTree, writer: Text) -> Figure:
    """The tree."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    ax, heights = figure.subplots(), places(tree.nodes())
    for node in tree.nodes():
        if node:
            ax.plot([len(node) - 1, len(node)], [heights[node[:-1]], heights[node]], color="0.6", linewidth=1)
            ax.text(len(node), heights[node], _word(writer, node[-1]), fontsize=8, parse_math=False)
    ax.set(yticks=[], xlabel="tokens written", title="every prefix that stood on the beam")
    ax.invert_yaxis()
    return figure
