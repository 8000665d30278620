"""The two-symbol temporal order problem: which two symbols were among the distractors, and in which order?

Hochreiter & Schmidhuber (1997), Experiment 6a; Raffel & Ellis (2015), Section 3. A model that does not know the order
of its inputs cannot tell XY from YX. It can tell the other classes, so its accuracy is at most 75 %.
"""

from functools import partial

import numpy as np
import torch

from rtx.checks import check_whole
from rtx.tasks.losses import classification
from rtx.tasks.task import Example, Task
from rtx.tasks.toy.drawn import Draws, drawn_together

SYMBOLS = "abcdXYEB"  # four distractors, the two that count, the one at the beginning and the one at the end
CLASSES = ("XX", "XY", "YX", "YY")
SHORTEST = 10  # a step for every tenth


def temporal_order(length: int = 100, size: int = 100_000, seed: int = 0) -> Task:
    """Classify sequences by two symbols in them: XX, XY, YX or YY.

    A sequence of T one-hot symbols begins with E and ends with B. The first symbol that counts comes after 1/10 to 2/10
    of the steps, the second after 5/10 to 6/10. At T = 100 these are the paper's places; for other lengths the
    proportions are ours. All other symbols are drawn from a, b, c, d. The shortest sequence has `length` steps, the
    longest 1.1 · length. There are `size` training sequences.
    """
    check_whole("length", length, SHORTEST)
    draw = partial(draw_sequences, shortest=length, longest=length * 11 // 10)
    return classification("temporal-order", len(SYMBOLS), len(CLASSES), drawn_together(draw, size, seed))


def draw_sequences(draws: Draws, shortest: int, longest: int) -> list[Example]:
    """Return one-hot symbols (T, 8), T from U{shortest … longest}, and the class, an index into `CLASSES`."""
    steps = draws.integers(shortest, longest + 1)
    ends = np.cumsum(steps)
    begins = ends - steps
    symbols = (4 * draws.uniform(steps)).astype(np.int64)
    symbols[begins], symbols[ends - 1] = SYMBOLS.index("E"), SYMBOLS.index("B")
    answer = draws.integers(0, len(CLASSES))
    counts = np.array([[SYMBOLS.index(symbol) for symbol in name] for name in CLASSES])[answer]  # (N, 2)
    symbols[begins + draws.integers(steps // 10, steps // 5 + 1)] = counts[:, 0]
    symbols[begins + draws.integers(steps // 2, steps * 6 // 10 + 1)] = counts[:, 1]
    sequences = torch.eye(len(SYMBOLS))[torch.from_numpy(symbols)].split(steps.tolist())
    return list(map(Example, sequences, torch.from_numpy(answer).unbind(0)))
