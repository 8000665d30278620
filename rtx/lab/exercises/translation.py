"""Exercises of notebook 14: attention over a padded source, greedy writing, and a beam search.

Bahdanau, Cho & Bengio (2015), Eq. 6.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise
from rtx.tasks.subwords import BEGIN, END, PAD

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
        "the softmax is over the batch: each row must sum to 1 over the source, the last axis": (
            lambda e, n: e.masked_fill(~_real(e, n), -torch.inf).softmax(0)
        ),
        "you masked after the softmax: the other weights do not sum to 1. Mask the scores": lambda e, n: (
            e.softmax(-1) * _real(e, n)
        ),
        "you masked with 0 before the softmax: exp(0) is 1, not 0": lambda e, n: _weights(e, _real(e, n), 0),
        "real scores can be lower than the number that you put into the padding: use minus infinity": (
            lambda e, n: _weights(e, _real(e, n), -100)
        ),
        "-10 leaves some weight on the padding: use minus infinity": lambda e, n: _weights(e, _real(e, n), -10),
        "the first position of the padding has a weight: positions count from 0, so use <": lambda e, n: _weights(
            e, _real(e, n + 1)
        ),
        "the last word of each source has no weight: the real positions are 0 to length - 1": lambda e, n: _weights(
            e, _real(e, n - 1)
        ),
        "you hid the first positions: the padding is at the end": lambda e, n: _weights(e, _real(e, n).flip(-1)),
        "all sources have the length of the first one: compare with each source's own length": lambda e, n: _weights(
            e, _real(e, n[:1])
        ),
        "the weights do not sum to 1: divide the exponentials by their sum": lambda e, n: e.exp() * _real(e, n),
        "this is an even share: it ignores the scores": lambda e, n: _weights(0 * e, _real(e, n)),
        "the sign of the scores is wrong: a larger score means a larger weight": lambda e, n: _weights(-e, _real(e, n)),
        "a sigmoid treats each position alone: use a softmax over the source": lambda e, n: e.sigmoid() * _real(e, n),
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
    written: list[int] = [BEGIN] if bug == "begin written" else []
    first = {"from padding": PAD, "from end": END}.get(bug, BEGIN)
    last, start = first, state
    for _ in range({"longest": longest + 9, "short": longest - 1}.get(bug, longest)):
        logits, after = step(last, start if bug == "state" else state)
        state = after
        token = int(logits.argmin() if bug == "least" else logits.argmax())
        if bug == "second":
            token = int(logits.topk(2).indices[1])
        written.append(token)
        if token == END and bug != "end":
            return written[:-1] if bug == "dropped" else written
        last = first if bug == "begin" else token
    return written


greedy_translation = Exercise(
    cases=lambda: [(*one, 12) for one in _models()] + [(*_models()[0], 2)],
    solution=_greedy,
    bugs={
        "the begin token is fed at every step: feed the token that you wrote last": partial(_greedy, bug="begin"),
        "each step gets the first state: pass on the state that the last step returned": partial(_greedy, bug="state"),
        "it writes on after the end token: stop there": partial(_greedy, bug="end"),
        "it writes more than `longest` tokens if no end token comes": partial(_greedy, bug="longest"),
        "it stops one token too early: `longest` tokens are allowed": partial(_greedy, bug="short"),
        "the begin token is in your text: it is fed to the model, but it is not written": partial(
            _greedy, bug="begin written"
        ),
        "the end token is missing: it is the last token of a complete text": partial(_greedy, bug="dropped"),
        "the first token fed is 0, the padding: begin with BEGIN": partial(_greedy, bug="from padding"),
        "the first token fed is END: begin with BEGIN": partial(_greedy, bug="from end"),
        "it takes the least likely token: use argmax": partial(_greedy, bug="least"),
        "it takes the second most likely token": partial(_greedy, bug="second"),
        "it returns only the last token: collect all tokens in a list": lambda *case: _greedy(*case)[-1:],
        "it returns only the first token: is `return` inside the loop?": lambda *case: _greedy(*case)[:1],
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
            state = live[0].state if bug == "one state" else before
            logits, after = step(tokens[-1] if tokens else BEGIN, state)
            gain = (
                logits if bug == "logits" else logits.softmax(-1) if bug == "probabilities" else logits.log_softmax(-1)
            )
            base = 0.0 if bug == "last token" else total
            own = [_Text(base + p, [*tokens, token], after) for token, p in enumerate(gain.tolist())]
            grown += sorted(own, reverse=bug != "least")[:width] if bug == "own places" else own
        grown.sort(key=lambda one: one.total, reverse=bug != "least")
        if bug == "places kept":
            ended = [one for one in grown[:width] if one.tokens[-1] == END]
            grown = ended + [one for one in grown if one.tokens[-1] != END][:width]
        elif bug != "own places":
            grown = grown[:width]
        found += [one for one in grown if one.tokens[-1] == END or (length == longest and bug != "no cut")]
        live = grown if bug == "end" else [one for one in grown if one.tokens[-1] != END]
        if bug == "first found" and found:
            break
    found = found or live
    power = {"total": 0, "first found": 0}.get(bug, 1)
    best = max(found, key=lambda one: one.total / len(one.tokens) ** power).tokens
    return {"begin written": [BEGIN, *best], "dropped": [t for t in best if t != END]}.get(bug, best)


beam_translation = Exercise(
    cases=lambda: [(*one, width, longest) for one in _models() for width, longest in ((1, 6), (2, 6), (4, 6), (3, 4))],
    solution=_beam,
    bugs={
        "this is greedy search: it ignores `width`": lambda step, state, width, longest: _greedy(step, state, longest),
        "it compares the sums at the end, so short texts win: divide each sum by the number of tokens": partial(
            _beam, bug="total"
        ),
        "it stops at the first complete text: a better one may be complete later": partial(_beam, bug="first found"),
        "it sums the logits: take log_softmax first": partial(_beam, bug="logits"),
        "it sums the probabilities: sum their logarithms": partial(_beam, bug="probabilities"),
        "it compares the last tokens only: add the log-probability of the tokens before": partial(
            _beam, bug="last token"
        ),
        "all hypotheses share one state: keep the state of each hypothesis beside its tokens": partial(
            _beam, bug="one state"
        ),
        "each hypothesis keeps its own `width` extensions: keep `width` of all extensions together": partial(
            _beam, bug="own places"
        ),
        "a text that ends takes one of the `width` places: cut to `width` first, then take out the complete ones": (
            partial(_beam, bug="places kept")
        ),
        "complete texts are continued after their end token: take them out of the beam": partial(_beam, bug="end"),
        "texts with `longest` tokens count as complete, also without an end token": partial(_beam, bug="no cut"),
        "it keeps the least likely extensions": partial(_beam, bug="least"),
        "the begin token is in your text: it is fed to the model, but it is not written": partial(
            _beam, bug="begin written"
        ),
        "the end token is missing: it is the last token of a complete text": partial(_beam, bug="dropped"),
    },
    praise="of the texts that were on the beam, the one with the best mean log-probability",
)
