"""Addition and multiplication over long sequences: two marked numbers among much noise.

Raffel & Ellis (2015), Section 2, after Hochreiter & Schmidhuber (1997).
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtx.nn.validate import check_choice, check_flag, check_positive
from rtx.tasks.task import Batch, Example, Sum, Task, mean_of, sequence_count, widened
from rtx.tasks.toy.drawn import check_longest, drawn_together
from rtx.tasks.toy.keyed import Draws

TOLERANCE = 0.04  # a sequence is solved if its |error| is smaller
SHORTEST = 20  # from here on the first ten steps lie before the midpoint
CONVENTIONS = ("paper", "code")


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
        convention: "paper" draws the noise from U[0, 1], the target is the sum; "code" (the authors') draws
            it from U[-1, 1], the target is 0.5 + sum/4, so that the tolerance is 0.16 in the sum.
        size: training sequences. The authors' code draws new ones for each of the 1,000 batches of 100 of an epoch, the
            paper does not say; here they are `size` fixed sequences, by default as many as an epoch of the paper has,
            or, in the order "fresh" of `rtx.tasks.loader`, others in each epoch.
        longest: the longest sequence; by default 1.1 · length.
        seed: of all sequences.
        read_padding: give each sequence zeros up to `longest` that count as steps, as in the authors' code, whose model
            is not told where a sequence ends. The paper's Eq. 1 and 2 take the mean over the sequence's own steps.

    Raises:
        ValueError: if an argument is out of range.
    """
    check_choice("convention", convention, CONVENTIONS)
    longest = _check_lengths(length, longest)
    low, combine = (0, lambda a, b: a + b) if convention == "paper" else (-1, lambda a, b: 0.5 + (a + b) / 4)
    padded = check_flag("read_padding", read_padding)
    return _task("add", partial(draw_sequences, length, longest, low, combine, padded), size, seed)


def multiply(
    length: int = 50,
    size: int = 100_000,
    longest: int | None = None,
    seed: int = 0,
    read_padding: bool = False,
) -> Task:
    """Multiply the two marked numbers; the noise is U[0, 1], in the paper and in the authors' code.

    Args:
        length: T0, the shortest sequence; at least 20.
        size: training sequences, as in `add`.
        longest, seed, read_padding: as in `add`.

    Raises:
        ValueError: if an argument is out of range.
    """
    longest = _check_lengths(length, longest)
    padded = check_flag("read_padding", read_padding)
    return _task("multiply", partial(draw_sequences, length, longest, 0, lambda a, b: a * b, padded), size, seed)


def squared_error(predictions: Tensor, batch: Batch) -> Sum:
    """Summed squared error of (B, 1) predictions."""
    return Sum((widened(predictions) - batch.targets).square().sum(), sequence_count(batch))


def solved(predictions: Tensor, batch: Batch) -> Sum:
    """How many of the (B, 1) predictions have an |error| below 0.04."""
    return Sum(((widened(predictions) - batch.targets).abs() < TOLERANCE).float().sum(), sequence_count(batch))


def draw_sequences(
    shortest: int,
    longest: int,
    low: float,
    combine: Callable[[Tensor, Tensor], Tensor],
    padded: bool,
    draws: Draws,
) -> list[Example]:
    """Noise from U[low, 1) and mask, together (T, 2), T from U{shortest … longest}; and the target (1,).

    Padded ones have zeros behind that, up to `longest`.
    """
    steps = draws.integers(shortest, longest + 1)
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
    """Two different steps: one of the first ten, one before the midpoint; never step 0, which holds a -1."""
    before_midpoint = (steps + 1) // 2  # as many steps t ≥ 0 have t < steps / 2
    first = draws.integers(1, 10)
    second = draws.integers(1, before_midpoint - 1)
    return first, second + (second >= first)  # uniform over the steps 1 … before_midpoint - 1 but `first`


def _check_lengths(length: int, longest: int | None) -> int:
    if check_positive("length", length) < SHORTEST:
        raise ValueError(
            f"length: expected at least {SHORTEST}, so that the first ten steps lie before the midpoint, got {length}"
        )
    return check_longest(length, longest, length * 11 // 10)


def _task(name: str, draw: Callable[[Draws], list[Example]], size: int, seed: int) -> Task:
    examples = drawn_together(draw, size, seed)

    def baseline() -> float:
        """The mean answer to everything; that of validation, as training may take minutes to draw."""
        mean = torch.stack([e.target for e in examples("validation")]).mean()
        return sum(abs(float(e.target) - float(mean)) < TOLERANCE for e in examples("test")) / len(examples("test"))

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
