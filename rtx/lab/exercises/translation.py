"""Exercises of notebook 14: attention over a padded source, greedy writing, and a beam search.

Bahdanau, Cho & Bengio (2015), Eq. 6.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import bug, exercise
from rtx.tasks.subwords import BEGIN, END

Step = Callable[[int, Any], tuple[Tensor, Any]]
SEEDS = (3, 8, 11, 14, 21, 24, 26)  # of the models that the checks bring


def _scores() -> list[tuple[Tensor, Tensor]]:
    """Scores around 0 and around -300, below what may be taken for minus infinity, in doubles, which can exp them."""
    around, low = torch.randn(2, 4, 5).double(), torch.randn(3, 3, 6).double() - 150
    return [(2 * around, torch.tensor([5, 3])), (2 * low, torch.tensor([2, 5, 4]))]  # no low source fills its table


@exercise(_scores)
@bug("the padding has a weight: hide the positions after the end of each source", lambda e, n: e.softmax(-1))
@bug("the softmax is over the target: each row must sum to 1 over the source, the last axis", {"(-1)": "(1)"})
@bug("mask the scores: masked weights no longer sum to 1", {"hidden.softmax(-1)": "e.softmax(-1) * real"})
@bug("real scores can be lower than your number: use minus infinity", {"-torch.inf": "-100"})
@bug("the first pad has a weight: positions count from 0, so use <", {" < ": " <= "})
@bug("the mask is inverted: only the padding has a weight", {"~real": "real"})
@bug("you masked with 0 before the softmax: exp(0) is 1, not 0", {"-torch.inf": "0"})
def source_weights(e: Tensor, lengths: Tensor) -> Tensor:
    """Each row sums to 1 over the real source positions, and the padding has a weight of 0."""
    real = (torch.arange(e.shape[-1]) < lengths[:, None])[:, None]  # (B, 1, S)
    hidden = e.masked_fill(~real, -torch.inf)
    return hidden.softmax(-1)


def _model(seed: int) -> tuple[Step, tuple[int, int]]:
    """Return a small random model of 7 symbols, with its first state. A state depends on all tokens so far."""
    table = torch.randn(13, 7, 7, generator=torch.Generator().manual_seed(seed))

    def step(token: int, state: tuple[int, int]) -> tuple[Tensor, tuple[int, int]]:
        steps, mixed = state
        mixed = (5 * mixed + 3 * int(token) + 1) % len(table)
        logits = table[mixed, int(token)].clone()
        logits[END] += steps - 2  # short texts are unlikely, and so are long ones
        return logits, (steps + 1, mixed)

    return step, (0, seed % 7 + 1)


@exercise(lambda: [*((*_model(seed), 12) for seed in SEEDS), (*_model(3), 2)])
@bug("the begin token is fed at every step: feed the token that you wrote last", {"step(last,": "step(BEGIN,"})
@bug("each step gets the first state: pass on the state that the last step returned", {"logits, state": "logits, _"})
@bug("it writes on after the end token: stop there", {" and last != END": ""})
@bug("it writes more than `longest` tokens if no end token comes", {"< longest": "< longest + 9"})
@bug("the begin token is in your text: it is fed, but not written", {"return written": "return [BEGIN, *written]"})
def greedy_translation(step: Step, state: Any, longest: int) -> list[int]:
    """The model runs free: it reads only what it wrote itself."""
    last, written = BEGIN, list[int]()
    while len(written) < longest and last != END:
        logits, state = step(last, state)
        last = int(logits.argmax())
        written.append(last)
    return written


@exercise(
    lambda: [(*_model(seed), width, longest) for seed in SEEDS for width, longest in ((1, 6), (2, 6), (4, 6), (3, 4))]
)
@bug("it compares sums, so short texts win: divide by the number of tokens", {"total / length": "total"})
@bug("it stops at the first complete text: a better one may be complete later", {"!= END]": "!= END and not found]"})
@bug("it sums the logits: take log_softmax first", {".log_softmax(-1)": ""})
@bug("all hypotheses share one state: keep each one's state beside its tokens", {"before)": "live[0][2])"})
@bug("complete texts go on after their end token: take them out of the beam", {" if one[1][-1] != END]": "]"})
@bug("this is greedy search: it ignores `width`", {"[:width]": "[:1]"})
def beam_translation(step: Step, state: Any, width: int, longest: int) -> list[int]:
    """This is the text with the best mean log-probability, of the texts that were on the beam."""
    live, found = [(0.0, [BEGIN], state)], list[tuple[float, list[int]]]()
    for length in range(1, longest + 1):
        grown = list[tuple[float, list[int], Any]]()
        for total, tokens, before in live:
            logits, after = step(tokens[-1], before)
            gains = logits.log_softmax(-1).tolist()
            grown += [(total + gain, [*tokens, token], after) for token, gain in enumerate(gains)]
        grown = sorted(grown, key=lambda one: one[0], reverse=True)[:width]
        found += [(total / length, tokens[1:]) for total, tokens, _ in grown if tokens[-1] == END or length == longest]
        live = [one for one in grown if one[1][-1] != END]
    return max(found)[1]
