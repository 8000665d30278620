"""The copy memory task: ten symbols, a long silence, and then the same ten symbols again.

Hochreiter & Schmidhuber (1997); Arjovsky, Shah & Bengio (2016); Bai, Kolter & Koltun (2018).
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtx.checks import check_whole
from rtx.nn.validate import check_positive
from rtx.tasks.losses import percent_commonest, percent_correct, scored_cross_entropy
from rtx.tasks.task import Batch, Example, Task, real_steps
from rtx.tasks.toy.drawn import drawn

BLANK, LAST_LETTER, SIGNAL = 0, 8, 9  # letters are 1 … 8; after the signal, 9, they are recalled
ALPHABET = 10


def copy_memory(
    length: int = 100, letters: int = 10, size: int = 10_000, longest: int | None = None, seed: int = 0
) -> Task:
    """Read ten letters, and recall them after T steps, one a step. All papers have ten `letters`; `length` is T.

    A sequence has T + 20 steps: ten of eight letters, T - 1 blanks, eleven signals. The target is a blank at every step
    but the last ten, where it is the letters in their order. The loss counts all steps; the metric counts the last ten.
    The best answer without memory has a loss of 10 ln 8 / (T + 20) nats a step: blanks, then any letter. Our symbols
    are one-hot; Bai et al. give the symbol's number as one input. With `longest`, T is drawn from U{length … longest}
    for each sequence. There are `size` training sequences.
    """
    longest = check_positive("length", length) if longest is None else check_whole("longest", longest, length)
    check_positive("letters", letters)
    examples = drawn(partial(draw_sequence, shortest=length, longest=longest, letters=letters), size, seed)
    return Task(
        name="copy-memory",
        inputs=ALPHABET,
        outputs=ALPHABET,
        per="step",
        examples=examples,
        loss=lambda predictions, batch: scored_cross_entropy(predictions, batch.targets, real_steps(batch)),
        measured=partial(recalled, letters=letters),
        scorer=partial(percent_correct, ALPHABET),
        metric="letters recalled (%)",
        best="max",
        baseline=lambda: percent_commonest(n for e in examples("test") for n in e.target[-letters:].tolist()),
    )


def recalled(predictions: Tensor, batch: Batch, letters: int) -> tuple[Tensor, Tensor]:
    """Return logits and targets of each sequence's last real steps, where its letters are recalled."""
    steps = torch.arange(batch.inputs.shape[1], device=batch.lengths.device)
    recall = real_steps(batch) & (steps >= batch.lengths[:, None] - letters)
    return predictions[recall], batch.targets[recall]


def draw_sequence(rng: np.random.Generator, shortest: int, longest: int, letters: int) -> Example:
    """Return one-hot symbols (T + 2 letters, 10), T from U{shortest … longest}, and their targets (T + 2 letters,)."""
    T = int(rng.integers(shortest, longest, endpoint=True))
    kept: Any = rng.integers(1, LAST_LETTER, size=letters, endpoint=True)
    symbols = np.full(T + 2 * letters, BLANK)
    symbols[:letters], symbols[-letters - 1 :] = kept, SIGNAL
    target = np.full(len(symbols), BLANK)
    target[-letters:] = kept
    return Example(torch.eye(ALPHABET)[torch.from_numpy(symbols)], torch.from_numpy(target))
