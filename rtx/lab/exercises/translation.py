"""Exercises of notebook 14: attention over a padded source, greedy writing, and a beam search.

Bahdanau, Cho & Bengio (2015), Eq. 6.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise
from rtx.tasks.subwords import BEGIN, END

Step = Callable[[int, Any], tuple[Tensor, Any]]
VOCABULARY = 7  # of the models that the checks bring


def _scores() -> list[tuple[Tensor, Tensor]]:
    """Scores around 0 and around -300, below what may be taken for minus infinity, in doubles, which can exp them."""
    draw = torch.Generator().manual_seed(0)
    lengths = [torch.tensor([5, 3]), torch.tensor([2, 5, 4])]
    sizes = ((2, 4, 5, 0), (3, 3, 6, -300))  # of the second batch, every source is shorter than the table is wide
    scores = [2 * torch.randn(B, T, S, generator=draw).double() + low for B, T, S, low in sizes]
    return list(zip(scores, lengths, strict=True))


def _real(scores: Tensor, lengths: Tensor) -> Tensor:
    return (torch.arange(scores.shape[-1]) < lengths[:, None])[:, None]  # (B, 1, S)


def _weights(e: Tensor, real: Tensor, hidden: float = -torch.inf) -> Tensor:
    return e.masked_fill(~real, hidden).softmax(-1)


source_weights = Exercise(
    cases=_scores,
    solution=lambda e, lengths: _weights(e, _real(e, lengths)),
    bugs={
        "the padding has a weight: hide the positions after the end of each source": lambda e, n: e.softmax(-1),
        "the mask is inverted: only the padding has a weight": lambda e, n: _weights(e, ~_real(e, n)),
        "the softmax is over the target: each row must sum to 1 over the source, the last axis": (
            lambda e, n: e.masked_fill(~_real(e, n), -torch.inf).softmax(1)
        ),
        "masked after the softmax, the rest does not sum to 1: mask the scores": lambda e, n: (
            e.softmax(-1) * _real(e, n)
        ),
        "you masked with 0 before the softmax: exp(0) is 1, not 0": lambda e, n: _weights(e, _real(e, n), 0),
        "real scores can be lower than your number: use minus infinity": lambda e, n: _weights(e, _real(e, n), -100),
        "the first pad has a weight: positions count from 0, so use <": lambda e, n: _weights(e, _real(e, n + 1)),
    },
    praise="each row sums to 1 over the real source positions, and the padding has a weight of 0",
)


def _models() -> list[tuple[Step, tuple[int, int]]]:
    """Small random models, each with its first state. A state depends on all tokens so far."""
    made: list[tuple[Step, tuple[int, int]]] = []
    for seed in (3, 8, 11, 14, 21):
        table = torch.randn(13, VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(seed))

        def step(token: int, state: tuple[int, int], table: Tensor = table) -> tuple[Tensor, tuple[int, int]]:
            steps, mixed = state
            mixed = (5 * mixed + 3 * int(token) + 1) % len(table)
            logits = table[mixed, int(token)].clone()
            logits[END] += steps - 2  # short texts are unlikely, and so are long ones
            return logits, (steps + 1, mixed)

        made.append((step, (0, seed % 7 + 1)))
    return made


def _greedy(step: Step, state: Any, longest: int, bug: str = "") -> list[int]:
    """Greedy search, or one with a bug."""
    written, last, start = list[int](), BEGIN, state
    for _ in range(longest + 9 if bug == "longest" else longest):
        logits, state = step(BEGIN if bug == "begin" else last, start if bug == "state" else state)
        last = int(logits.argmax())
        written.append(last)
        if last == END and bug != "end":
            break
    return written


greedy_translation = Exercise(
    cases=lambda: [(*one, 12) for one in _models()] + [(*_models()[0], 2)],
    solution=_greedy,
    bugs={
        "the begin token is fed at every step: feed the token that you wrote last": partial(_greedy, bug="begin"),
        "each step gets the first state: pass on the state that the last step returned": partial(_greedy, bug="state"),
        "it writes on after the end token: stop there": partial(_greedy, bug="end"),
        "it writes more than `longest` tokens if no end token comes": partial(_greedy, bug="longest"),
        "the begin token is in your text: it is fed, but not written": lambda *given: [BEGIN, *_greedy(*given)],
        "the end token is missing: it is the last token of a complete text": lambda *given: [
            token for token in _greedy(*given) if token != END
        ],
    },
    praise="free running: the model reads only what it wrote itself",
)


class _Text(NamedTuple):
    """A hypothesis: its log-probability, its tokens after the begin token, and the state after them."""

    total: float
    tokens: list[int]
    state: Any


def _beam(step: Step, state: Any, width: int, longest: int, bug: str = "") -> list[int]:
    """Beam search, or one with a bug. Hypotheses compete by their mean log-probability."""
    live, found = [_Text(0.0, [], state)], list[_Text]()
    for length in range(1, longest + 1):
        grown = list[_Text]()
        for total, tokens, before in live:
            logits, after = step(tokens[-1] if tokens else BEGIN, live[0].state if bug == "one state" else before)
            gains = logits if bug == "logits" else logits.log_softmax(-1)
            grown += [_Text(total + p, [*tokens, token], after) for token, p in enumerate(gains.tolist())]
        grown.sort(key=lambda one: one.total, reverse=True)
        kept = grown[:width]
        if bug == "places":
            ended = [one for one in kept if one.tokens[-1] == END]
            kept = ended + [one for one in grown if one.tokens[-1] != END][:width]
        found += [one for one in kept if one.tokens[-1] == END or length == longest]
        live = kept if bug == "end" else [one for one in kept if one.tokens[-1] != END]
        if bug == "first found" and found:
            break
    power = 0 if bug in ("total", "first found") else 1
    return max(found, key=lambda one: one.total / len(one.tokens) ** power).tokens


beam_translation = Exercise(
    cases=lambda: [(*one, width, longest) for one in _models() for width, longest in ((1, 6), (2, 6), (4, 6), (3, 4))],
    solution=_beam,
    bugs={
        "this is greedy search: it ignores `width`": lambda step, state, width, longest: _greedy(step, state, longest),
        "it compares sums, so short texts win: divide by the number of tokens": partial(_beam, bug="total"),
        "it stops at the first complete text: a better one may be complete later": partial(_beam, bug="first found"),
        "it sums the logits: take log_softmax first": partial(_beam, bug="logits"),
        "all hypotheses share one state: keep each one's state beside its tokens": partial(_beam, bug="one state"),
        "a text that ends takes one of the places: cut to `width` before you take it out": partial(_beam, bug="places"),
        "complete texts are continued after their end token: take them out of the beam": partial(_beam, bug="end"),
    },
    praise="of the texts that were on the beam, the one with the best mean log-probability",
)
