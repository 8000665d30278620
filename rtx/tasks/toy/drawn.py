"""Sequences drawn on demand. Each depends only on its seed, split and index, so none has to be stored.

Long sequences are drawn one by one, each with a generator of NumPy. For short ones that generator takes longer to set
up than the model takes to learn from the sequence. So they are drawn many at a time by SplitMix64, which needs no
set-up: a number is a mix of a key and a place. Steele, Lea & Flood (2014), Fast Splittable Pseudorandom Number
Generators.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rtx.checks import check_seed
from rtx.nn.validate import check_positive
from rtx.tasks.losses import Splits
from rtx.tasks.task import SPLITS, Example, Examples

HELD_OUT = 1000  # sequences of validation and of test, as in Raffel & Ellis (2015)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
PLACE = np.uint64(0xD1342543DE82EF95)  # odd, so that no two places of a sequence have the same product
Words = NDArray[np.uint64]


def drawn(draw: Callable[[np.random.Generator], Example], size: int, seed: int) -> Splits:
    """Return split → its sequences: `size` to train, 1,000 to validate, 1,000 to test."""
    return _splits(lambda split, indices: [draw(np.random.default_rng((seed, split, i))) for i in indices], size, seed)


def drawn_together(draw: Callable[["Draws"], list[Example]], size: int, seed: int) -> Splits:
    """Return the same as `drawn`, but draw a batch of sequences at a time."""
    return _splits(lambda split, indices: draw(Draws(keys(seed, split, np.array(indices)))), size, seed)


def _splits(make: Callable[[int, list[int]], list[Example]], size: int, seed: int) -> Splits:
    check_seed("seed", seed)
    sizes = {"train": check_positive("size", size), "validation": HELD_OUT, "test": HELD_OUT}
    return lambda split: Examples(sizes[split], partial(make, SPLITS.index(split)), endless=True)


def mix(z: Words) -> Words:
    """Apply SplitMix64's last step, "variant 13" of Stafford: every bit of a word changes every other."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keys(*parts: int | NDArray[np.int64]) -> Words:
    """Return one key for each combination of whole numbers, such as a seed, a split and an index."""
    key = np.zeros(1, np.uint64)
    for part in parts:
        key = mix(key + GOLDEN + np.asarray(part, np.int64).astype(np.uint64))
    return key


class Draws:
    """Random numbers for N sequences at once. `key` (N,) has one key for each sequence."""

    def __init__(self, key: Words) -> None:
        self.key = key
        self.taken = 0  # words of each sequence's second stream, which gives the single numbers

    def integers(self, low: int | NDArray[np.int64], high: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) whole numbers, uniform over low … high - 1. The bounds may be (N,), too."""
        self.taken += 1
        words = mix(mix(self.key + GOLDEN) + np.uint64(int(GOLDEN) * self.taken % 2**64))
        share = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (low + np.floor(share * (np.asarray(high) - low))).astype(np.int64)

    def uniform(self, lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return `lengths` numbers of U[0, 1) for each sequence, one sequence after the other."""
        ends = np.cumsum(lengths)
        place = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        words = mix(np.repeat(self.key, lengths) + PLACE * place.astype(np.uint64))
        return (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
