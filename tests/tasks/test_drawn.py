"""Random numbers by key: uniform, unrelated between keys and places, and SplitMix64's own."""

import numpy as np
import pytest
from scipy import stats

from rtx.tasks.toy.drawn import GOLDEN, Draws, keys, mix

N = 20_000


def test_the_mix_is_splitmix64():
    """Against the numbers that its authors' reference implementation begins with at seed 0."""
    states = GOLDEN * np.arange(1, 4, dtype=np.uint64)
    assert [hex(int(word)) for word in mix(states)] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]


def uniforms(length: int = 3) -> np.ndarray:
    return Draws(keys(7, 0, np.arange(N))).uniform(np.full(N, length)).reshape(N, length)


def test_numbers_are_uniform_at_every_place_and_over_all():
    drawn = uniforms()
    assert drawn.dtype == np.float32 and drawn.min() >= 0 and drawn.max() < 1
    for column in drawn.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    long = Draws(keys(1, 2, 3)).uniform(np.array([N]))
    assert stats.kstest(long, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("a", "b"), [((0, 0), (0, 1)), ((0, 0), (1, 0)), ((0, 0), (1, 1)), ((0, 1), (1, 0))])
def test_neighbours_in_key_and_place_are_unrelated(a, b):
    drawn = uniforms()
    shifted = [drawn[row : N - 1 + row, column] for row, column in (a, b)]
    assert abs(np.corrcoef(*shifted)[0, 1]) < 4 / N**0.5


def test_whole_numbers_reach_every_value_alike_and_are_unrelated_to_the_noise():
    draws = Draws(keys(7, 0, np.arange(N)))
    first, second = draws.integers(2, 12), draws.integers(np.zeros(N, np.int64), np.arange(N) % 3 + 1)
    assert stats.chisquare(np.bincount(first, minlength=12)[2:]).pvalue > 1e-3 and set(first) == set(range(2, 12))
    assert (second <= np.arange(N) % 3).all() and set(second) == {0, 1, 2}
    assert abs(np.corrcoef(first, uniforms()[:, 0])[0, 1]) < 4 / N**0.5
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / N**0.5


def test_keys_differ_in_every_part():
    found = {int(key) for seed in range(20) for split in range(3) for key in keys(seed, split, np.arange(50))}
    assert len(found) == 20 * 3 * 50
