"""Addition and multiplication over long sequences: two marked numbers among many others.

Raffel & Ellis (2015), Section 2, after Hochreiter & Schmidhuber (1997).
"""

import math
import operator
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtx.checks import check_choice, check_flag, check_whole
from rtx.tasks.task import Batch, Example, Sum, Task, mean_of, widened
from rtx.tasks.toy.drawn import Draws, drawn_together

TOLERANCE = 0.04  # a sequence is solved if its |error| is smaller
SHORTEST = 20  # from this length on, the first ten steps lie before the midpoint

Combine = Callable[[Tensor, Tensor], Tensor]


def add(
    length: int = 50,
    convention: str = "paper",
    size: int = 100_000,
    longest: int | None = None,
    seed: int = 0,
    read_padding: bool = False,
) -> Task:
    """Add the two marked numbers.

    Args:
        length: T0, the shortest sequence; at least 20.
        convention: "paper" draws the numbers from U[0, 1], and the target is the sum. "code" (the authors') draws them
            from U[-1, 1], and the target is 0.5 + sum/4. So its tolerance is 0.16 in the sum.
        size: training sequences. The authors' code draws new ones in each epoch; the paper does not say. Here they are
            fixed, unless the loader's order is "fresh".
        longest: the longest sequence; by default 1.1 · length, rounded down.
        seed: of all sequences.
        read_padding: give each sequence zeros that count as steps, as the authors' code does: its model does not know
            where a sequence ends. As in that code, `longest` is then 1.1 · length rounded up (56 for 50, because 1.1 ·
            50 is above 55 in floating point), and all sequences are at least one step shorter. In that code the second
            mark lies before half of the padded length; here it lies before the midpoint of the sequence.
    """
    if check_choice("convention", convention, ("paper", "code")) == "paper":
        return _task("add", 0, operator.add, length, size, longest, seed, read_padding)
    return _task("add", -1, lambda a, b: 0.5 + (a + b) / 4, length, size, longest, seed, read_padding)


def multiply(
    length: int = 50, size: int = 100_000, longest: int | None = None, seed: int = 0, read_padding: bool = False
) -> Task:
    """Multiply the two marked numbers, from U[0, 1] in the paper and in the authors' code. Arguments as in `add`."""
    return _task("multiply", 0, operator.mul, length, size, longest, seed, read_padding)


def squared_error(predictions: Tensor, batch: Batch) -> Sum:
    """Summed squared error of (B, 1) predictions."""
    return Sum((widened(predictions) - batch.targets).square().sum(), batch.lengths.new_tensor(len(batch.lengths)))


def solved(predictions: Tensor, batch: Batch) -> Sum:
    """Number of the (B, 1) predictions that have an |error| below 0.04."""
    close = (widened(predictions) - batch.targets).abs() < TOLERANCE
    return Sum(close.float().sum(), batch.lengths.new_tensor(len(batch.lengths)))


def draw_sequences(
    shortest: int, longest: int, low: int, combine: Combine, padded: bool, draws: Draws
) -> list[Example]:
    """Return numbers from U[low, 1) and a mask, together (T, 2), T from U{shortest … longest}, and the target (1,).

    If `padded`, zeros follow up to `longest`, at least one if the lengths differ.
    """
    steps = draws.integers(shortest, longest + (not padded or longest == shortest))
    first, second = draw_marks(draws, steps)
    given = np.full_like(steps, longest) if padded else steps
    begins = np.cumsum(given) - given
    inputs = np.zeros((given.sum(), 2), np.float32)
    own = (np.arange(longest) < steps[:, None]).ravel() if padded else slice(None)
    inputs[own, 0] = low + (1 - low) * draws.uniform(steps)
    inputs[begins, 1] = inputs[begins + steps - 1, 1] = -1
    inputs[begins + first, 1] = inputs[begins + second, 1] = 1
    a, b = (torch.from_numpy(inputs[begins + mark, :1]) for mark in (first, second))
    sequences = torch.from_numpy(inputs).split(given.tolist())
    return list(map(Example, sequences, combine(a, b).unbind(0)))


def draw_marks(draws: Draws, steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two different steps: one of the first ten, one before the midpoint. Step 0 has a -1 and is not marked."""
    before_midpoint = (steps + 1) // 2  # the number of steps t ≥ 0 with t < steps / 2
    first, second = draws.integers(1, 10), draws.integers(1, before_midpoint - 1)
    return first, second + (second >= first)  # uniform over the steps 1 … before_midpoint - 1 without `first`


def _task(
    name: str, low: int, combine: Combine, length: int, size: int, longest: int | None, seed: int, padded: bool
) -> Task:
    check_whole("length", length, SHORTEST)
    check_flag("read_padding", padded)
    if longest is None:
        longest = math.ceil(1.1 * length) if padded else length * 11 // 10
    check_whole("longest", longest, length)
    examples = drawn_together(partial(draw_sequences, length, longest, low, combine, padded), size, seed)

    def baseline() -> float:
        # always the mean target, that of validation: to draw the training set takes minutes
        validation, test = (torch.cat([e.target for e in examples(split)[:]]) for split in ("validation", "test"))
        return float(((test - validation.mean()).abs() < TOLERANCE).double().mean())

    return Task(
        name=name,
        inputs=2,
        outputs=1,
        per="sequence",
        examples=examples,
        loss=squared_error,
        measured=mean_of(solved),
        metric="solved within .04 (fraction)",
        best="max",
        baseline=baseline,
    )
