"""Checks of notebook 14: attention over a padded source, and writing without being told.

Bahdanau, Cho & Bengio (2015), Eq. 5-6.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from rtx.lab.exercises.exercise import Exercise
from rtx.tasks import subwords

BEGIN, END = 0, 1
Step = Callable[[int, int], tuple[Tensor, int]]


def _scores() -> list[tuple[Tensor, Tensor]]:
    """Scores around 0 and around -300, below what may be taken for minus infinity, in doubles, which can exp them."""
    draw = torch.Generator().manual_seed(0)
    lengths = [torch.tensor([5, 3]), torch.tensor([2, 5, 4])]
    sizes = ((2, 4, 5, 0), (3, 3, 6, -300))  # of the second batch, every source is shorter than the table is wide
    scores = [2 * torch.randn(B, T, S, generator=draw).double() + low for B, T, S, low in sizes]
    return list(zip(scores, lengths, strict=True))


def _real(scores: Tensor, lengths: Tensor) -> Tensor:
    return (torch.arange(scores.shape[-1]) < lengths[:, None])[:, None]  # (B, 1, S)


source_weights = Exercise(
    cases=_scores,
    solution=lambda e, lengths: e.masked_fill(~_real(e, lengths), -torch.inf).softmax(-1),
    bugs={
        "padding is looked at: mask what stands behind a source's length": lambda e, n: e.softmax(-1),
        "the mask is inverted: only padding is looked at": lambda e, n: e.masked_fill(_real(e, n), -torch.inf).softmax(
            -1
        ),
        "the softmax is over the target: each row has to sum to 1 over the source": (
            lambda e, n: e.masked_fill(~_real(e, n), -torch.inf).softmax(1)
        ),
        "masked after the softmax: what is left does not sum to 1": lambda e, n: e.softmax(-1) * _real(e, n),
        "masked with 0 before the softmax: exp(0) is 1, not 0": lambda e, n: e.masked_fill(~_real(e, n), 0).softmax(-1),
        "real scores may lie below the number that you put in: padding gets exactly nothing by minus infinity": (
            lambda e, n: e.masked_fill(~_real(e, n), -100).softmax(-1)
        ),
        "off by one: the place behind the last one is padding, too; places are counted from 0": lambda e, n: (
            e.masked_fill(~_real(e, n + 1), -torch.inf).softmax(-1)
        ),
    },
    praise="each target position spreads 1 over the real source positions, and nothing over the padding",
)


def _searches() -> list[tuple[Step, list[int], int]]:
    """Models of five tokens whose logits hang on the last token and a state that counts steps; a reference; a limit."""
    made: list[tuple[Step, list[int], int]] = []
    for seed, reference in ((3, [2, 3, END]), (8, [4, 4, 2, END]), (11, [3, END])):
        table = torch.randn(9, 5, 5, generator=torch.Generator().manual_seed(seed))
        table[:2, :, END] = -9.0  # no model ends at once
        table[6:, :, END] = 9.0

        def step(token: int, state: int, table: Tensor = table) -> tuple[Tensor, int]:
            return table[min(state, 8), token], state + 1

        made.append((step, reference, 8))
    return [*made, (made[0][0], [2, END], 2)]


def _greedy(step: Step, reference: list[int], longest: int, bug: str = "") -> list[int]:
    """Greedy search, or one with a bug."""
    written: list[int] = [BEGIN] if bug == "first" else []
    last, state = subwords.BEGIN if bug == "names" else BEGIN, 0
    end = subwords.END if bug in ("name", "names") else END  # notebook 14 has them at hand: its sub-words count padding
    longest = {"longest": 99, "reference": len(reference)}.get(bug, longest)
    for place in range(longest):
        logits, after = step(last, state)
        state = state if bug == "state" else after
        token = int(logits.argmin() if bug == "least" else logits.argmax())
        written.append(token)
        if token == end and bug != "end":
            return written[:-1] if bug == "dropped" else written
        last = BEGIN if bug == "begin" else reference[min(place, len(reference) - 1)] if bug == "teacher" else token
    return written


def _told(step: Step, reference: list[int], longest: int) -> list[int]:
    """One pass over the reference, as in training."""
    last, state, written = BEGIN, 0, list[int]()
    for token in reference[:longest]:
        logits, state = step(last, state)
        written.append(int(logits.argmax()))
        last = token
    return written


greedy_translation = Exercise(
    cases=_searches,
    solution=_greedy,
    bugs={
        "teacher forcing at test time: the reference's token is fed, which nobody has when translating": (
            partial(_greedy, bug="teacher")
        ),
        "teacher forcing at test time: a loop over the reference feeds its tokens and ends with it": _told,
        "the begin token is fed at every step: feed what was written last": partial(_greedy, bug="begin"),
        "the state is not carried on: each step begins anew": partial(_greedy, bug="state"),
        "it writes on behind the end token": partial(_greedy, bug="end"),
        "it writes more than `longest` tokens where no end token comes": partial(_greedy, bug="longest"),
        "it stops at the reference's length, which nobody knows when translating": partial(_greedy, bug="reference"),
        "the begin token is fed, not written": partial(_greedy, bug="first"),
        "the end token is 1 here; `END` is the number of it among the sub-words": partial(_greedy, bug="name"),
        "begin and end are 0 and 1 here; `BEGIN` and `END` are numbers of sub-words": partial(_greedy, bug="names"),
        "the end token is missing from what was written": partial(_greedy, bug="dropped"),
        "the unlikeliest token is taken": partial(_greedy, bug="least"),
        "it returns the reference": lambda step, reference, longest: reference,
    },
    praise="free running: the model reads nothing but what it wrote itself",
)
