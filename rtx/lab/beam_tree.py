"""A beam search with all that it has looked at: every prefix that stood on the beam, and what came out."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rtx.nn.mode import evaluating
from rtx.nn.search import beam_search
from rtx.tasks.subwords import BEGIN, END

Prefix = tuple[int, ...]


@dataclass(frozen=True)
class BeamTree:
    """What a search met.

    Args:
        live: every prefix that was on the beam → its log-probability; the empty one is the root.
        found: the complete hypotheses, the best first, each with its end token unless it was cut off.
        scores: of these, log-probability / length^alpha.
    """

    live: dict[Prefix, float]
    found: list[Prefix]
    scores: list[float]

    def nodes(self) -> list[Prefix]:
        """All prefixes, also those of the complete hypotheses, shorter ones first."""
        whole = {prefix[:i] for prefix in self.found for i in range(len(prefix) + 1)}
        return sorted(whole | set(self.live), key=lambda prefix: (len(prefix), prefix))


@torch.no_grad()
def search(model: nn.Module, source: list[int], width: int, alpha: float, length: int) -> BeamTree:
    """`rtx.nn.search.beam_search` for one source sentence, watched.

    Args:
        model: one of `rtx.models.TRANSLATORS`.
        source: tokens, without the end token.
        width: of the beam.
        alpha: of length normalisation.
        length: tokens that a hypothesis may have.

    Raises:
        ValueError: as `beam_search`, or if the source is no sentence of the model's.
    """
    live: dict[Prefix, float] = {(): 0.0}
    tokens = torch.tensor([[*source, END]], device=next(model.parameters()).device)

    def step(last: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The model's step; the state also holds each row's tokens, their log-probability, and the last prediction."""
        inner, history, total, before = state
        if before.shape[1] > 1:  # not at the first step
            total = total + before.gather(1, last[:, None]).squeeze(1)
            history = torch.cat([history, last[:, None]], 1)
            for row, score in zip(history.tolist(), total.tolist(), strict=True):
                if END not in row and score > -torch.inf:
                    live[tuple(row)] = score
        logits, inner = model.step(last, inner)  # type: ignore[operator]
        return logits, (inner, history, total, logits.log_softmax(-1))

    with evaluating(model):
        inner = model.start(tokens)  # type: ignore[operator]
        state = (inner, tokens[:, :0], torch.zeros(1, device=tokens.device), torch.zeros(1, 1, device=tokens.device))
        vocabulary = int(model.target_vocabulary)  # type: ignore[arg-type]
        how = {"begin": BEGIN, "end": END, "width": width, "alpha": alpha, "length": length}
        best = beam_search(step, state, 1, vocabulary, device=tokens.device, **how)  # type: ignore[arg-type]
    rows = zip(best.tokens[0].tolist(), best.lengths[0].tolist(), best.scores[0].tolist(), strict=True)
    complete = [(tuple(row[:size]), score) for row, size, score in rows if size]
    return BeamTree(live, [prefix for prefix, _ in complete], [score for _, score in complete])


def places(nodes: list[Prefix]) -> dict[Prefix, float]:
    """A height for each node of a tree: leaves one below the other, a parent in the middle of its children."""
    children: dict[Prefix, list[Prefix]] = {node: [] for node in nodes}
    for node in nodes:
        if node:
            children[node[:-1]].append(node)
    heights: dict[Prefix, float] = {}
    leaves = 0

    def put(node: Prefix) -> float:
        nonlocal leaves
        if children[node]:
            below = [put(child) for child in children[node]]
            heights[node] = (below[0] + below[-1]) / 2
        else:
            heights[node], leaves = float(leaves), leaves + 1
        return heights[node]

    put(())
    return heights
