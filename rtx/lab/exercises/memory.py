"""Exercises of notebook 06: attention with a memory of the segments before, what is kept, and how far a stack sees.

Dai et al. (2019), Transformer-XL, §3.2.
"""

import math

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Case, Layer, bug, exercise


def _attend(context: Tensor) -> Tensor:
    """Return causal attention without parameters, by content and by distance, (B, N, D) to (B, N, D)."""
    places = torch.arange(context.shape[1])
    scores = context @ context.mT - 0.3 * (places[:, None] - places)
    return scores.masked_fill(places > places[:, None], -math.inf).softmax(-1) @ context


def _texts() -> list[tuple[Tensor, Layer, int, int]]:
    """Return inputs, a layer, S and P: memories shorter and longer than a segment, none, and a last short segment."""
    sizes = ((9, 3, 3), (9, 3, 2), (11, 4, 6), (8, 3, 1), (7, 2, 5), (6, 3, 0))
    return [(torch.randn(2, T, 3).requires_grad_(), _attend, S, P) for T, S, P in sizes]


def _gradient_seen(y: Tensor, case: Case) -> Tensor:
    """Return an answer, or infinities if gradients reach the memory of the last segment. Without gradients, raise."""
    x, _, S, _ = case
    start = (x.shape[1] - 1) // S * S
    (gradient,) = torch.autograd.grad(y[:, start:].sum(), x)
    return torch.full_like(y, math.inf) if gradient[:, :start].any() else y.detach()


@exercise(_texts, measure=_gradient_seen)
@bug("gradients flow into the memory: `detach()` is missing", {".detach()": ""})
@bug("your memory is all text before: keep its last P positions", {"max(0, start - P)": ""})
@bug("a negative start counts from the end of the text: use `max(0, start - P)`", {"max(0, start - P)": "start - P"})
@bug(
    "your memory has what the layer returned: it must have what the layer read",
    {"x[:, max(0, start - P) : start]": "torch.cat([x[:, :0], *found], 1)[:, max(0, start - P) :]"},
)
@bug("you keep S outputs: the last segment may be shorter", {"memory.shape[1] :": "-S:"})
def with_memory(x: Tensor, layer: Layer, S: int, P: int) -> Tensor:
    """Each segment attends to the P positions before it, and is trained on its own positions only."""
    found = list[Tensor]()
    for start in range(0, x.shape[1], S):
        memory, segment = x[:, max(0, start - P) : start].detach(), x[:, start : start + S]
        found.append(layer(torch.cat([memory, segment], 1))[:, memory.shape[1] :])
    return torch.cat(found, 1)


def _memories() -> list[tuple[Tensor, Tensor, int]]:
    memory, segment = torch.randn(2, 4, 3).requires_grad_(), torch.randn(2, 3, 3).requires_grad_()
    first = memory[:, :0].detach()  # no memory is before the first segment
    return [*((memory, segment, P) for P in (4, 2, 7, 9, 0)), (first, segment, 2), (first, segment, 4)]


@exercise(_memories, measure=lambda kept, case: torch.full_like(kept, math.inf) if kept.requires_grad else kept)
@bug("gradients flow into the memory: `detach()` is missing", {".detach()": ""})
@bug("a slice [-0:] is everything, and should be nothing where P = 0", {"max(0, both.shape[1] - P)": "-P"})
@bug("with P larger than the segment, some old memory stays", lambda memory, segment, P: segment[:, -P:].detach())
@bug("the old memory comes first, then the segment", {"[memory, segment]": "[segment, memory]"})
def next_memory(memory: Tensor, segment: Tensor, P: int) -> Tensor:
    """The next memory has the newest P positions, without gradients."""
    both = torch.cat([memory, segment], 1)
    return both[:, max(0, both.shape[1] - P) :].detach()


@exercise(lambda: [(2, 16, 1), (1, 8, 8), (2, 8, 8), (3, 5, 7), (2, 8, 0), (12, 128, 128), (4, 16, 40)])
@bug("right if P = S; where does the oldest position stand in its own segment?", lambda L, S, P: (L + 1) * S)
@bug("each layer adds more than P: the oldest position saw its segment from the start", lambda L, S, P: S + L * P)
@bug("⌈P / S⌉ is rounded up: one position reaches into a whole segment", {"math.ceil(P / S)": "(P // S)"})
def xl_reach(L: int, S: int, P: int) -> int:
    """Each layer below the top reaches back by whole segments, and the lowest one by P more."""
    return S + (L - 1) * S * math.ceil(P / S) + P
