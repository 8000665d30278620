"""Exercises of notebook 06: attention with a memory of the segments before, what is kept, and how far a stack sees.

Dai et al. (2019), Transformer-XL, §3.2.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise

Layer = Callable[[Tensor], Tensor]


def _attend(context: Tensor) -> Tensor:
    """Return causal attention without parameters, by content and by distance, (B, N, D) to (B, N, D)."""
    places = torch.arange(context.shape[1])
    scores = context @ context.mT - 0.3 * (places[:, None] - places)
    return scores.masked_fill(places > places[:, None], -math.inf).softmax(-1) @ context


def _texts() -> list[tuple[Tensor, Layer, int, int]]:
    """Return inputs, a layer, S and P: memories shorter and longer than a segment, none, and a last short segment."""
    draw = torch.Generator().manual_seed(0)
    sizes = ((9, 3, 3), (9, 3, 2), (11, 4, 6), (8, 3, 1), (7, 2, 5), (6, 3, 0))
    return [(torch.randn(2, T, 3, generator=draw).requires_grad_(), _attend, S, P) for T, S, P in sizes]


def _by_segment(
    memory: Callable[[Tensor, int, int, int], Tensor] = lambda x, start, S, P: x[:, max(0, start - P) : start],
    outputs: Callable[[Tensor, int, int, int], Tensor] = lambda y, length, S, P: y[:, y.shape[1] - length :],
    kept: Callable[[Tensor], Tensor] = Tensor.detach,
) -> Callable[[Tensor, Layer, int, int], Tensor]:
    """Return a layer with memory, with one thing changed."""

    def layer_with_memory(x: Tensor, layer: Layer, S: int, P: int) -> Tensor:
        found = []
        for start in range(0, x.shape[1], S):
            segment = x[:, start : start + S]
            y = layer(torch.cat([kept(memory(x, start, S, P)), segment], 1))
            found.append(outputs(y, segment.shape[1], S, P))
        return torch.cat(found, 1)

    return layer_with_memory


def _of_outputs(x: Tensor, layer: Layer, S: int, P: int) -> Tensor:
    """Remember what the layer returned, not what it read."""
    found = x[:, :0]
    for segment in x.split(S, 1):
        context = torch.cat([found[:, max(0, found.shape[1] - P) :].detach(), segment], 1)
        found = torch.cat([found, layer(context)[:, -segment.shape[1] :]], 1)
    return found


def _gradient_seen(y: Tensor, case: tuple[Any, ...]) -> Tensor:
    """Return an answer, or infinities if gradients reach the memory (+) or do not reach the segment (-)."""
    x, _, S, _ = case
    if y.shape != x.shape:
        return y.detach()
    start = (x.shape[1] - 1) // S * S
    gradient = torch.autograd.grad(y[:, start:].sum(), x)[0] if y.requires_grad else torch.zeros_like(x)
    if gradient[:, :start].any():
        return torch.full_like(y, math.inf)
    return y.detach() if gradient[:, start:].any() else torch.full_like(y, -math.inf)


with_memory = Exercise(
    cases=_texts,
    solution=_by_segment(),
    measure=_gradient_seen,
    bugs={
        "gradients flow into the memory: `detach()` is missing": _by_segment(kept=lambda memory: memory),
        "your memory is all text before: keep its last P positions": _by_segment(lambda x, start, S, P: x[:, :start]),
        "a negative start counts from the end of the text: use `max(0, start - P)`": _by_segment(
            lambda x, start, S, P: x[:, start - P : start]
        ),
        "your memory has what the layer returned: it must have what the layer read": _of_outputs,
        "you cut off P outputs, but the first memory is shorter": _by_segment(outputs=lambda y, length, S, P: y[:, P:]),
        "you keep S outputs: the last segment may be shorter": _by_segment(outputs=lambda y, length, S, P: y[:, -S:]),
    },
    praise="each segment attends to the P positions before it, and is trained on its own positions only",
)


def _memories() -> list[tuple[Tensor, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    memory, segment = (torch.randn(2, n, 3, generator=draw).requires_grad_() for n in (4, 3))
    first = torch.zeros(2, 0, 3), torch.randn(2, 3, 3, generator=draw).requires_grad_()  # no memory is before it
    return [*((memory, segment, P) for P in (4, 2, 7, 9, 0)), (*first, 2), (*first, 4)]


def _newest(
    part: Callable[[Tensor, int], Tensor] = lambda both, P: both[:, max(0, both.shape[1] - P) :],
    kept: Callable[[Tensor], Tensor] = Tensor.detach,
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return the next memory with one thing changed."""
    return lambda memory, segment, P: kept(part(torch.cat([memory, segment], 1), P))


next_memory = Exercise(
    cases=_memories,
    solution=_newest(),
    measure=lambda kept, case: torch.full_like(kept, math.inf) if kept.requires_grad else kept,
    bugs={
        "gradients flow into the memory: `detach()` is missing": _newest(kept=lambda newest: newest),
        "a slice [-0:] is everything, and should be nothing where P = 0": _newest(lambda both, P: both[:, -P:]),
        "a negative start counts from the end: where P is more than there is, keep all": _newest(
            lambda both, P: both[:, both.shape[1] - P :]
        ),
        "with P larger than the segment, some old memory stays": lambda memory, segment, P: segment[:, -P:].detach(),
        "the old memory comes first, then the segment": lambda memory, segment, P: _newest()(segment, memory, P),
    },
    praise="the newest P positions, without gradients",
)

xl_reach = Exercise(
    cases=lambda: [(2, 16, 1), (1, 8, 8), (2, 8, 8), (3, 5, 7), (2, 8, 0), (12, 128, 128), (4, 16, 40)],
    solution=lambda L, S, P: S + (L - 1) * S * math.ceil(P / S) + P,
    bugs={
        "right if P = S; where does the oldest position stand in its own segment?": lambda L, S, P: (L + 1) * S,
        "each layer adds more than P: the oldest position saw its segment from the start": lambda L, S, P: S + L * P,
        "the lowest layer adds P positions, not whole segments": lambda L, S, P: S + L * S * math.ceil(P / S),
        "⌈P / S⌉ is rounded up: a memory of one position reaches into the whole segment before": (
            lambda L, S, P: S + (L - 1) * S * (P // S) + P
        ),
    },
    praise="each layer below the top reaches back by whole segments, and the lowest one by P more",
)
