"""Copy memory: every sequence by its definition, a loss over all steps, a score over the letters alone."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.tasks.task import collate, real_steps
from rtx.tasks.toy import copy_memory


@settings(max_examples=60)
@given(length=st.integers(1, 200), seed=st.integers(0, 10**6), index=st.integers(0, 999))
def test_every_sequence_follows_the_definition(length, seed, index):
    inputs, target = copy_memory(length=length, seed=seed).split("test")[index]
    symbols = inputs.argmax(1)
    assert inputs.shape == (length + 20, 10) and (inputs.sum(1) == 1).all()
    letters = symbols[:10]
    assert letters.min() >= 1 and letters.max() <= 8
    assert (symbols[10 : 10 + length - 1] == 0).all() and (symbols[-11:] == 9).all()
    assert target.dtype == torch.int64 and (target[:-10] == 0).all()
    assert torch.equal(target[-10:], letters)  # each comes back length + 10 steps later
    assert torch.equal(target[length + 10 :], letters)


def test_fewer_letters_make_it_shorter():
    task = copy_memory(length=5, letters=3)
    inputs, target = task.split("test")[0]
    symbols = inputs.argmax(1).tolist()
    assert symbols[3:7] == [0] * 4 and symbols[7:] == [9] * 4 and len(symbols) == 5 + 2 * 3
    assert target.tolist() == [0] * 8 + symbols[:3]
    batch = collate(task.split("test")[:50], task.per)
    shown = torch.eye(10)[batch.targets]
    shown[:, :-3] = torch.nan  # what is not recalled is not scored
    assert task.score(shown, batch) == 100


def test_without_memory_the_loss_is_arjovskys_and_the_score_one_in_eight():
    task = copy_memory(length=30)
    batch = collate(task.split("test")[:1000], task.per)
    logits = torch.full((1000, 50, 10), -1e4)
    logits[..., 0] = 0  # blanks, then any letter
    logits[:, -10:] = torch.tensor([-1e4, *[0.0] * 8, -1e4])
    loss = task.loss(logits, batch)
    assert loss.count == 50_000
    assert float(loss.total / loss.count) == pytest.approx(10 * math.log(8) / 50, rel=1e-4)
    best = max(task.score(torch.eye(10)[torch.full((1000, 50), letter)], batch) for letter in range(1, 9))
    assert task.baseline() == pytest.approx(best) and best == pytest.approx(12.5, abs=1)


def test_lengths_vary_when_asked_and_padding_is_neither_lost_on_nor_scored():
    task = copy_memory(length=5, longest=40)
    examples = task.split("validation")[:200]
    batch = collate(examples, task.per)
    assert set(batch.lengths.tolist()) == set(range(25, 61))
    right = torch.eye(10)[batch.targets]
    wrong_only_in_padding = torch.where(real_steps(batch)[..., None], right, torch.nan)
    assert task.score(wrong_only_in_padding, batch) == 100
    loss = task.loss(30 * wrong_only_in_padding, batch)
    assert loss.count == batch.lengths.sum() and float(loss.total) == pytest.approx(0, abs=1e-3)
    recalled = sum(int((e.target[-10:] == 3).sum()) for e in examples)
    threes = torch.eye(10)[torch.full(batch.targets.shape, 3)]
    assert task.score(threes, batch) == pytest.approx(100 * recalled / 2000)
