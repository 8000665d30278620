"""Explorer of beam search: every prefix that was on the beam as a tree, the hypotheses, and where each one looked.

Xu et al. (2019), MC-RNN, translate with a beam of 5; Wu et al. (2016), §7, normalise by length.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from rtx.lab.explore.page import Page, maps
from rtx.nn.mode import evaluating
from rtx.nn.search import beam_search
from rtx.tasks.subwords import BEGIN, END
from rtx.tasks.task import Text

WIDTHS, ALPHAS = range(1, 6), (0.0, 0.5, 1.0, 1.5)
LONGEST = 40  # tokens of a hypothesis
TRY = "widen the beam from 1 and see when the best hypothesis changes; set alpha to 0: are shorter ones preferred?"
Prefix = tuple[int, ...]


class BeamTree(NamedTuple):
    """What a search met.

    Args:
        live: every prefix that was on the beam; the empty one is the root.
        found: the complete hypotheses, the best first, each with its end token unless it was cut off.
        scores: of these, log-probability / length^alpha.
    """

    live: set[Prefix]
    found: list[Prefix]
    scores: list[float]


def beam(model: nn.Module, texts: Sequence[Text], source: str) -> Page:
    """A search for the translation of `source`, with `width`, `alpha` and the chosen `hypothesis`.

    Args:
        model: one of `rtx.models.TRANSLATORS`, trained or not.
        texts: how it reads sources and writes targets, as a task's `texts`.
        source: a sentence.

    Raises:
        ValueError: if the source has no token, or one that the model does not know.
    """
    reader, writer = texts
    tokens = reader.encode(source)
    if not tokens:
        raise ValueError(f"source: expected a sentence, got {source!r}")
    most = min(LONGEST, 2 * len(tokens) + 10)
    trees = {f"{w} {a:g}": search(model, tokens, w, a, most) for w in WIDTHS for a in ALPHAS}
    looks = {prefix: _looked(model, tokens, prefix) for tree in trees.values() for prefix in tree.found}
    words, best = [_word(reader, token) for token in (*tokens, END)], trees["3 1"].found[0]
    data = {
        "source": words,
        "trees": {key: _drawn(tree, writer) for key, tree in trees.items()},
        "looks": {str(prefix): look for prefix, look in looks.items()},
        "alphas": ALPHAS,
    }
    return Page(
        Path(__file__).with_name("beam.js"),
        data,
        _still(looks[best], words, [_word(writer, token) for token in best]),
        TRY,
        title="What does beam search look at?",
        presets={"Greedy": {"width": 1}, "Short ones preferred": {"width": 5, "alpha": 0.0}},
        width=3,
        alpha=1.0,
        hypothesis=1,
    )


@torch.no_grad()
def search(model: nn.Module, source: list[int], width: int, alpha: float, length: int) -> BeamTree:
    """`rtx.nn.search.beam_search` for one source sentence without its end token, watched."""
    live: set[Prefix] = {()}
    tokens = torch.tensor([[*source, END]], device=next(model.parameters()).device)

    def step(last: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The model's step; the state also holds each row's tokens, their log-probability, and the last prediction."""
        inner, history, total, before = state
        if before.shape[1] > 1:  # not at the first step
            total = total + before.gather(1, last[:, None]).squeeze(1)
            history = torch.cat([history, last[:, None]], 1)
            live.update(tuple(row) for row in history[total > -torch.inf].tolist() if END not in row)
        logits, inner = model.step(last, inner)  # type: ignore[operator]
        return logits, (inner, history, total, logits.log_softmax(-1))

    with evaluating(model):
        inner = model.start(tokens)  # type: ignore[operator]
        state = (inner, tokens[:, :0], torch.zeros(1, device=tokens.device), torch.zeros(1, 1, device=tokens.device))
        vocabulary = int(model.target_vocabulary)  # type: ignore[arg-type]
        how: dict[str, Any] = {"begin": BEGIN, "end": END, "width": width, "alpha": alpha, "length": length}
        best = beam_search(step, state, 1, vocabulary, device=tokens.device, **how)
    rows = zip(best.tokens[0].tolist(), best.lengths[0].tolist(), best.scores[0].tolist(), strict=True)
    complete = [(tuple(row[:size]), score) for row, size, score in rows if size]
    return BeamTree(live, [prefix for prefix, _ in complete], [score for _, score in complete])


def _word(text: Text, token: int) -> str:
    return "end" if token == END else text.decode([token]) or "·"


def _drawn(tree: BeamTree, writer: Text) -> dict[str, Any]:
    """A tree's nodes, parents first, each with its parent's place in the list and its depth; and the hypotheses."""
    whole = {prefix[:i] for prefix in tree.found for i in range(len(prefix) + 1)}
    nodes = sorted(whole | tree.live, key=lambda prefix: (len(prefix), prefix))
    number = {node: i for i, node in enumerate(nodes)}
    drawn = [(_word(writer, node[-1]), number[node[:-1]], len(node)) if node else ("", -1, 0) for node in nodes]
    found = [
        {"text": writer.decode(list(prefix)), "score": score, "node": number[prefix], "look": str(prefix)}
        for prefix, score in zip(tree.found, tree.scores, strict=True)
    ]
    return {"nodes": drawn, "found": found, "extended": len(tree.live) - 1}


@torch.no_grad()
def _looked(model: nn.Module, source: list[int], prefix: Prefix) -> Tensor:
    """The alignment (T, S) of a hypothesis, rounded to 1 %."""
    device = next(model.parameters()).device
    read, written = (torch.tensor([one], device=device) for one in ([*source, END], [BEGIN, *prefix[:-1]]))
    with evaluating(model):
        return model.align(read, written)[0].double().cpu().round(decimals=2)  # type: ignore[operator]


def _still(look: Tensor, source: list[str], written: list[str]) -> Figure:
    """Where the best hypothesis looked."""
    title = "where the best hypothesis of a beam of 3 looked (bright: large weight)"
    figure = maps({title: look}, "", "", vmin=0, vmax=1)
    figure.axes[0].set_xticks(range(1, len(source) + 1), source, parse_math=False)
    figure.axes[0].set_yticks(range(1, len(written) + 1), written, parse_math=False)
    return figure
