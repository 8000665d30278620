"""Random numbers by key: many sequences drawn at once, each still depending on its own key alone.

A generator of numpy's for each sequence takes longer to set up than a short sequence takes to be learned from.
SplitMix64 needs no set-up: a number is the mix of a key and a place. Steele, Lea & Flood (2014), Fast Splittable
Pseudorandom Number Generators.
"""

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
PLACE = np.uint64(0xD1342543DE82EF95)  # odd, so that no two places of a sequence have the same product

Words = NDArray[np.uint64]


def mix(z: Words) -> Words:
    """SplitMix64's finaliser, "variant 13" of Stafford: every bit of a word moves every other."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keys(*parts: int | NDArray[np.int64]) -> Words:
    """One key for each combination of whole numbers, such as a seed, a split and an index."""
    key = np.zeros(1, np.uint64)
    for part in parts:
        key = mix(key + GOLDEN + np.asarray(part, np.int64).astype(np.uint64))
    return key


class Draws:
    """Draws for N sequences at once.

    Args:
        key: (N,), one for each.
    """

    def __init__(self, key: Words) -> None:
        self.key = key
        self.taken = 0  # so many words of each sequence's second stream, which gives the single numbers

    def integers(self, low: int | NDArray[np.int64], high: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) whole numbers, uniform over low … high - 1; the bounds may be (N,), too."""
        self.taken += 1
        words = mix(mix(self.key + GOLDEN) + np.uint64(int(GOLDEN) * self.taken % 2**64))
        share = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (low + np.floor(share * (np.asarray(high) - low))).astype(np.int64)

    def uniform(self, lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        """U[0, 1), `lengths` numbers for each sequence, one sequence behind the other."""
        ends = np.cumsum(lengths)
        place = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        words = mix(np.repeat(self.key, lengths) + PLACE * place.astype(np.uint64))
        return (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
