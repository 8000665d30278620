"""Drawn sequences: each depends on seed, split and index only; SplitMix64's numbers are uniform and unrelated."""

import numpy as np
import pytest
import torch
from scipy import stats

from rtx.tasks import task_by_name
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


@pytest.mark.parametrize("name", ["add", "multiply", "temporal-order", "copy-memory", "locality-dial", "look-up"])
def test_a_sequence_depends_on_seed_split_and_index_only(name):
    def train(seed: int = 3, size: int = 50):
        return task_by_name(name, seed=seed, size=size).split("train")

    examples = train()
    same = [train(size=99)[17], *examples.__getitems__([17]), examples[17 - 50]]
    assert all(torch.equal(e.inputs, examples[17].inputs) and torch.equal(e.target, examples[17].target) for e in same)
    held_out = task_by_name(name, seed=3).split("test")
    others = [train(4)[17], held_out[17], examples[18]]
    assert all(not torch.equal(e.inputs, examples[17].inputs) for e in others)
    assert (len(examples), len(held_out)) == (50, 1000)
