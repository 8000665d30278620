"""Sequences drawn on demand: each depends on its seed, split and index alone, so that none need be kept."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from rtx.nn.validate import check_positive, is_whole
from rtx.tasks.task import SPLITS, Example, Examples, Split
from rtx.tasks.toy.keyed import Draws, keys

LARGEST_SEED = 2**63 - 1  # the largest that NumPy's whole numbers hold
HELD_OUT = 1000  # sequences of validation and of test, as in Raffel & Ellis (2015)


def drawn(draw: Callable[[np.random.Generator], Example], size: int, seed: int) -> Callable[[Split], Sequence[Example]]:
    """Split → its sequences: `size` to train, 1,000 to validate, 1,000 to test.

    Raises:
        ValueError: if `size` is below 1, or `seed` no whole number from 0 to `LARGEST_SEED`.
    """
    check_seed(seed)
    sizes: dict[Split, int] = {"train": check_positive("size", size), "validation": HELD_OUT, "test": HELD_OUT}

    def make(split: Split, index: int) -> Example:
        # numpy cuts a seed into words of 32 bits and adds zeros: the upper one has a place of its own
        return draw(np.random.default_rng((seed % 2**32, SPLITS.index(split), index, seed >> 32)))

    return lambda split: Examples(sizes[split], partial(make, split), endless=True)


def drawn_together(
    draw: Callable[[Draws], list[Example]], size: int, seed: int
) -> Callable[[Split], Sequence[Example]]:
    """The same, a batch of sequences at a time, for those that are learned from faster than drawn one by one.

    Raises:
        ValueError: as `drawn`.
    """
    check_seed(seed)
    sizes: dict[Split, int] = {"train": check_positive("size", size), "validation": HELD_OUT, "test": HELD_OUT}

    def make_many(split: Split, indices: list[int]) -> list[Example]:
        return draw(Draws(keys(seed, SPLITS.index(split), np.array(indices))))

    def examples(split: Split) -> Sequence[Example]:
        many = partial(make_many, split)
        return Examples(sizes[split], lambda index: many([index])[0], many, endless=True)

    return examples


def check_seed(seed: int) -> int:
    """Return `seed` if it is a whole number from 0 to `LARGEST_SEED`.

    Raises:
        ValueError: otherwise.
    """
    if not is_whole(seed) or not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"seed: expected a whole number from 0 to {LARGEST_SEED}, got {seed!r}")
    return int(seed)


def check_longest(length: int, longest: int | None, default: int) -> int:
    """The longest length: `longest`, or `default` where it is None.

    Raises:
        ValueError: if it is below `length`.
    """
    if longest is None:
        return default
    if check_positive("longest", longest) < length:
        raise ValueError(f"longest: expected at least length = {length}, got {longest}")
    return longest
