"""Exercises of notebook 06: attention with a memory of the segments before, what is kept, and how far a stack sees.

Dai et al. (2019), Transformer-XL, §3.2.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.exercises.exercise import Exercise

Layer = Callable[[Tensor], Tensor]
Segments = Callable[[Tensor, Layer, int, int], Tensor]


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
    kept: Callable[[Tensor], Tensor] = Tensor.detach,
    own: Callable[[Tensor], Tensor] = lambda segment: segment,
    joined: Callable[[Tensor, Tensor], Tensor] = lambda memory, segment: torch.cat([memory, segment], 1),
    outputs: Callable[[Tensor, int, int, int], Tensor] = lambda y, length, S, P: y[:, y.shape[1] - length :],
    starts: Callable[[int, int], range] = lambda T, S: range(0, T, S),
) -> Segments:
    """Return a layer with memory, with one thing changed."""

    def layer_with_memory(x: Tensor, layer: Layer, S: int, P: int) -> Tensor:
        found = []
        for start in starts(x.shape[1], S):
            segment = own(x[:, start : start + S])
            y = layer(joined(kept(memory(x, start, S, P)), segment))
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
    solution=lambda x, layer, S, P: _by_segment()(x, layer, S, P),
    measure=_gradient_seen,
    bugs={
        "gradients flow into the memory: `detach()` is missing": _by_segment(kept=lambda memory: memory),
        "no gradient reaches the segment itself: detach the memory alone": _by_segment(own=Tensor.detach),
        "these are separate segments: the memory is missing, or comes after the segment": _by_segment(
            lambda x, start, S, P: x[:, :0]
        ),
        "your memory is all of the text before the segment: keep its last P positions": _by_segment(
            lambda x, start, S, P: x[:, :start]
        ),
        "your memory is the first P positions of the text: keep the last P before the segment": _by_segment(
            lambda x, start, S, P: x[:, : min(P, start)]
        ),
        "your memory is the segment before, S positions: it must have P": _by_segment(
            lambda x, start, S, P: x[:, max(0, start - S) : start]
        ),
        "your memory has P positions at most, but never more than one segment": _by_segment(
            lambda x, start, S, P: x[:, max(0, start - min(S, P)) : start]
        ),
        "your memory ends one position too early: it must reach up to the segment": _by_segment(
            lambda x, start, S, P: x[:, max(0, start - P - 1) : max(0, start - 1)]
        ),
        "your memory overlaps the segment by one position: it must end before the segment": _by_segment(
            lambda x, start, S, P: x[:, max(0, start - P) : start + 1]
        ),
        "a negative start counts from the end of the text: use `max(0, start - P)`": _by_segment(
            lambda x, start, S, P: x[:, start - P : start]
        ),
        "zeros stand before the text, and attention gives weight to them: the first memory is empty": _by_segment(
            lambda x, start, S, P: pad(x, (0, 0, P, 0))[:, start : start + P]
        ),
        "your memory has what the layer returned: it must have what the layer read": _of_outputs,
        "the memory stands after the segment, and you return its outputs": _by_segment(
            joined=lambda memory, segment: torch.cat([segment, memory], 1)
        ),
        "you return the outputs of the memory, too: keep those of the segment": _by_segment(
            outputs=lambda y, length, S, P: y
        ),
        "you cut P outputs off, but the memory of the first segments is shorter: cut off as many as it has": (
            _by_segment(outputs=lambda y, length, S, P: y[:, P:])
        ),
        "you keep S outputs, but the last segment may be shorter: cut off as many as the memory has": _by_segment(
            outputs=lambda y, length, S, P: y[:, -S:]
        ),
        "you keep the first outputs, which are those of the memory": _by_segment(
            outputs=lambda y, length, S, P: y[:, :length]
        ),
        "the last segment is missing: it may be shorter than S": _by_segment(
            starts=lambda T, S: range(0, T - S + 1, S)
        ),
        "every position has P positions before it: the memory belongs to a segment": (
            lambda x, layer, S, P: torch.cat(
                [
                    layer(torch.cat([x[:, max(0, t - P) : t].detach(), x[:, t : t + 1]], 1))[:, -1:]
                    for t in range(len(x[0]))
                ],
                1,
            )
        ),
    },
    praise="each segment attends to the P positions before it, and is trained on its own positions only",
)


def _memories() -> list[tuple[Tensor, Tensor, int]]:
    draw = torch.Generator().manual_seed(0)
    memory, segment = (torch.randn(2, n, 3, generator=draw).requires_grad_() for n in (4, 3))
    first = torch.zeros(2, 0, 3), torch.randn(2, 3, 3, generator=draw).requires_grad_()  # no memory is before it
    return [*((memory, segment, P) for P in (4, 2, 7, 9, 0)), (*first, 2), (*first, 4)]


def _last(both: Tensor, P: int) -> Tensor:
    return both[:, max(0, both.shape[1] - P) :].detach()


def _both(memory: Tensor, segment: Tensor) -> Tensor:
    return torch.cat([memory, segment], 1)


next_memory = Exercise(
    cases=_memories,
    solution=lambda memory, segment, P: _last(_both(memory, segment), P),
    measure=lambda kept, case: torch.full_like(kept, math.inf) if kept.requires_grad else kept,
    bugs={
        "gradients flow into the memory: `detach()` is missing": lambda memory, segment, P: _both(memory, segment)[
            :, max(0, memory.shape[1] + segment.shape[1] - P) :
        ],
        "a slice [-0:] is everything, and should be nothing where P = 0": lambda memory, segment, P: _both(
            memory, segment
        )[:, -P:].detach(),
        "a negative start counts from the end: where P is more than there is, keep all": lambda memory, segment, P: (
            _both(memory, segment)[:, memory.shape[1] + segment.shape[1] - P :].detach()
        ),
        "with P larger than the segment, the end of the old memory stays; and a slice [-0:] is everything": (
            lambda memory, segment, P: segment[:, -P:].detach()
        ),
        "you keep the oldest positions: keep the newest": lambda memory, segment, P: _both(memory, segment)[
            :, :P
        ].detach(),
        "with P larger than the segment, the end of the old memory stays": lambda memory, segment, P: _last(segment, P),
        "the memory grows without end: keep P positions": lambda memory, segment, P: _both(memory, segment).detach(),
        "the old memory comes first, then the segment": lambda memory, segment, P: _last(_both(segment, memory), P),
        "the memory never changes: the segment is missing": lambda memory, segment, P: _last(memory, P),
        "this is always the whole segment: P may be smaller or larger": lambda memory, segment, P: segment.detach(),
        "one position too many": lambda memory, segment, P: _last(_both(memory, segment), P + 1),
        "the newest position is missing": lambda memory, segment, P: _last(_both(memory, segment)[:, :-1], P),
        "the newest positions are in reverse order": lambda memory, segment, P: _last(_both(memory, segment), P).flip(
            1
        ),
    },
    praise="the newest P positions, without gradients",
)

xl_reach = Exercise(
    cases=lambda: [(2, 16, 1), (1, 8, 8), (2, 8, 8), (3, 5, 7), (2, 8, 0), (12, 128, 128), (4, 16, 40)],
    solution=lambda L, S, P: S + (L - 1) * S * math.ceil(P / S) + P,
    bugs={
        "right if P = S; in general, count where the oldest position of the memory stands in its own segment": (
            lambda L, S, P: (L + 1) * S
        ),
        "each layer adds more than P: the oldest position of the memory saw its own segment from the start": (
            lambda L, S, P: S + L * P
        ),
        "the lowest layer adds P positions, not whole segments: its memory begins P before a segment": (
            lambda L, S, P: S + L * S * math.ceil(P / S)
        ),
        "one segment too little: the output's own segment counts, too": (
            lambda L, S, P: (L - 1) * S * math.ceil(P / S) + P
        ),
        "⌈P / S⌉ is rounded up: a memory of one position reaches into the whole segment before": (
            lambda L, S, P: S + (L - 1) * S * (P // S) + P
        ),
        "a memory longer than a segment reaches into more than one segment before": (
            lambda L, S, P: S + (L - 1) * S * min(P, 1) + P
        ),
        "this is the receptive field of one layer": lambda L, S, P: S + P,
        "one layer too many": lambda L, S, P: S + L * S * math.ceil(P / S) + P,
        "a layer adds to the receptive field, it does not double it": lambda L, S, P: 2 ** (L - 1) * (S + P),
        "the output's own position counts once: it is a part of its segment": (
            lambda L, S, P: S + (L - 1) * S * math.ceil(P / S) + P + 1
        ),
        "this is a segment alone, without a memory": lambda L, S, P: S,
    },
    praise="each layer below the top reaches back by whole segments, and the lowest one by P more",
)
