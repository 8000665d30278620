"""Explorer of beam search: every prefix that was on the beam as a tree, the hypotheses, and where each one looked.

Xu et al. (2019), MC-RNN, translate with a beam of 5; Wu et al. (2016), §7, normalise by length.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rtx.lab.explore.page import Page
from rtx.nn.mode import evaluating
from rtx.nn.search import beam_search
from rtx.tasks.subwords import BEGIN, END
from rtx.tasks.task import Text

WIDTHS, ALPHAS = range(1, 6), (0.0, 0.5, 1.0, 1.5)
LONGEST = 40  # tokens of a hypothesis
TRY = "set the beam width to 1, then widen it: when does the best hypothesis change? And with a larger alpha?"
Prefix = tuple[int, ...]


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
    looks = {prefix: _looked(model, tokens, prefix) for _, found in trees.values() for prefix in found}
    data = {
        "text": source,
        "source": [_word(reader, token) for token in (*tokens, END)],
        "trees": {key: _drawn(*tree, writer) for key, tree in trees.items()},
        "looks": {str(prefix): look for prefix, look in looks.items()},
        "alphas": ALPHAS,
    }
    return Page(
        "beam.js",
        data,
        TRY,
        title="What does beam search look at?",
        presets={"Greedy": {"width": 1}, "Long ones preferred": {"width": 5, "alpha": 1.5}},
        width=3,
        alpha=1.0,
        hypothesis=1,
    )


@torch.no_grad()
def search(
    model: nn.Module, source: list[int], width: int, alpha: float, length: int
) -> tuple[set[Prefix], dict[Prefix, float]]:
    """Watch `rtx.nn.search.beam_search` for one source sentence, given without its end token.

    Returns:
        Every prefix that was on the beam, with the empty one as the root; and the scores of the complete hypotheses,
        log-probability / length^alpha, the best first. Each has its end token unless it was cut off.
    """
    live: set[Prefix] = set()
    tokens = torch.tensor([[*source, END]], device=next(model.parameters()).device)

    def step(last: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The model's step; the state also holds each row's tokens."""
        inner, before = state
        history = torch.cat([before, last[:, None]], 1)
        live.update(tuple(row[1:]) for row in history.tolist() if END not in row)  # the first one is BEGIN
        logits, inner = model.step(last, inner)  # type: ignore[operator]
        return logits, (inner, history)

    with evaluating(model):
        state = model.start(tokens), tokens[:, :0]  # type: ignore[operator]
        vocabulary = int(model.target_vocabulary)  # type: ignore[arg-type]
        how: dict[str, Any] = {"begin": BEGIN, "end": END, "width": width, "alpha": alpha, "length": length}
        best = beam_search(step, state, 1, vocabulary, device=tokens.device, **how)
    rows = zip(best.tokens[0].tolist(), best.lengths[0].tolist(), best.scores[0].tolist(), strict=True)
    return live, {tuple(row[:size]): score for row, size, score in rows if size}


def _word(text: Text, token: int) -> str:
    return "end" if token == END else text.decode([token]) or "·"


def _drawn(live: set[Prefix], found: dict[Prefix, float], writer: Text) -> dict[str, Any]:
    """A tree's nodes, parents first, each with its parent's place in the list and its depth; and the hypotheses."""
    whole = {prefix[:i] for prefix in found for i in range(len(prefix) + 1)}
    nodes = sorted(whole | live)
    number = {node: i for i, node in enumerate(nodes)}
    drawn = [(_word(writer, node[-1]), number[node[:-1]], len(node)) if node else ("", -1, 0) for node in nodes]
    ranked = [
        {"text": writer.decode(list(prefix)), "score": score, "node": number[prefix], "look": str(prefix)}
        for prefix, score in found.items()
    ]
    return {"nodes": drawn, "found": ranked, "extended": len(live) - 1}


@torch.no_grad()
def _looked(model: nn.Module, source: list[int], prefix: Prefix) -> Tensor:
    """The alignment (T, S) of a hypothesis, rounded to 1 %."""
    device = next(model.parameters()).device
    read, written = (torch.tensor([one], device=device) for one in ([*source, END], [BEGIN, *prefix[:-1]]))
    with evaluating(model):
        return model.align(read, written)[0].double().cpu().round(decimals=2)  # type: ignore[operator]
