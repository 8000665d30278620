"""Look-up: read pairs such as `a1b7c3`, then say which digit belongs to a letter: `b?` is 7.

The task is ours. It needs two steps of attention: each digit must know the letter before it, and the question must find
the digit that has its letter. Olsson et al. (2022), In-context Learning and Induction Heads.
"""

import string
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from rtx.nn.validate import check_positive
from rtx.tasks.losses import percent_commonest, percent_correct, token_nll
from rtx.tasks.task import IGNORED, Example, Task
from rtx.tasks.toy.drawn import drawn
from rtx.tasks.vocabulary import vocabulary

LETTERS, DIGITS = 10, 10  # a to j, 0 to 9; with more letters a Transformer needs many more updates
SYMBOLS = string.ascii_lowercase[:LETTERS] + string.digits + "?"
FEWEST = 2  # pairs: with one pair there is nothing to choose


def look_up(pairs: int = 8, size: int = 50_000, seed: int = 0) -> Task:
    """Read pairs of a letter and a digit. Then every letter is asked for once, in random order.

    `a1b7c3b?c?a?` is a sequence of three pairs. The targets are at the question marks: 7, 3, 1. The letters of a
    sequence are different, and its digits are any. Always the same digit is right in about 10 %. A sequence has 2 to
    `pairs` pairs: N with a probability in proportion to 1 / N, so that there are equally many questions for every N.
    There are `size` training sequences.
    """
    if not FEWEST <= check_positive("pairs", pairs) <= LETTERS:
        raise ValueError(f"pairs: expected {FEWEST} to {LETTERS}, got {pairs}")
    shares = 1 / np.arange(FEWEST, pairs + 1)
    examples = drawn(partial(draw_sequence, shares=shares / shares.sum()), size, seed)
    return Task(
        name="look-up",
        inputs=len(SYMBOLS),
        outputs=len(SYMBOLS),
        per="token",
        examples=examples,
        loss=token_nll,
        measured=lambda predictions, batch: (predictions, batch.targets[batch.targets != IGNORED]),
        scorer=partial(percent_correct, len(SYMBOLS)),
        metric="answers right (%)",
        best="max",
        baseline=lambda: percent_commonest(n for e in examples("test") for n in e.target.tolist() if n != IGNORED),
        texts=(vocabulary("characters", SYMBOLS),),
        sparse=True,
    )


def draw_sequence(rng: np.random.Generator, shares: NDArray[np.float64]) -> Example:
    """Return the tokens (4 N,) of N pairs and N questions, and the answers. `shares` has a probability for each N."""
    number = FEWEST + int(rng.choice(len(shares), p=shares))
    letters, digits = rng.permutation(LETTERS)[:number], LETTERS + rng.integers(DIGITS, size=number)
    order, mark = rng.permutation(number), np.full(number, SYMBOLS.index("?"))
    tokens = np.concatenate([np.stack([letters, digits], 1), np.stack([letters[order], mark], 1)]).ravel()
    target = np.full(4 * number, IGNORED)
    target[2 * number + 1 :: 2] = digits[order]
    return Example(torch.from_numpy(tokens), torch.from_numpy(target))
