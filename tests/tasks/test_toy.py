"""The addition and multiplication problems, as Raffel & Ellis (2015), Section 2, define them."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.tasks.loader import loader
from rtx.tasks.task import collate
from rtx.tasks.toy.arithmetic import add, draw_marks, multiply
from rtx.tasks.toy.drawn import Draws, keys

TARGETS = {
    "add": (lambda **kw: add(**kw), lambda a, b: a + b),
    "add, code": (lambda **kw: add(convention="code", **kw), lambda a, b: 0.5 + (a + b) / 4),
    "multiply": (lambda **kw: multiply(**kw), lambda a, b: a * b),
}


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60)
@given(
    length=st.integers(20, 400),
    seed=st.integers(0, 10**6),
    split=st.sampled_from(["train", "validation", "test"]),
    index=st.integers(0, 999),
)
def test_every_sequence_follows_the_definition(name, length, seed, split, index):
    make, target = TARGETS[name]
    inputs, answer = make(length=length, seed=seed).split(split)[index]
    noise, mask = inputs.T
    steps = len(inputs)
    assert length <= steps <= 1.1 * length
    assert inputs.dtype == answer.dtype == torch.float32 and answer.shape == (1,)
    assert mask[0] == mask[-1] == -1
    marks = (mask == 1).nonzero().flatten().tolist()
    assert len(marks) == 2 and (mask == 0).sum() == steps - 4
    assert marks[0] < 10 and marks[1] < steps / 2
    low = -1 if name == "add, code" else 0
    assert noise.min() >= low and noise.max() <= 1
    torch.testing.assert_close(answer[0], target(*noise[marks]))


def test_marks_are_uniform_over_what_is_allowed():
    marks = np.stack(draw_marks(Draws(keys(0, np.arange(20_000))), np.full(20_000, 21)), 1)
    assert (marks[:, 0] != marks[:, 1]).all()
    first = np.bincount(marks[:, 0], minlength=11)
    assert first[0] == first[10] == 0 and np.abs(first[1:10] / 20_000 - 1 / 9).max() < 0.01
    second = np.bincount(marks[:, 1], minlength=12)  # step 10 is before the midpoint of 21 steps, step 11 is not
    assert second[0] == second[11] == 0 and (second[1:11] > 0).all()
    given_one = np.bincount(marks[marks[:, 0] == 1, 1], minlength=11)
    assert given_one[1] == 0 and np.abs(given_one[2:] / given_one.sum() - 1 / 9).max() < 0.03


def test_lengths_reach_both_ends_and_noise_fills_its_interval():
    examples = add(length=50).split("validation")[:]  # a slice is drawn at once
    lengths = [len(e.inputs) for e in examples]
    assert set(lengths) == {50, 51, 52, 53, 54, 55}
    noise = torch.cat([e.inputs[:, 0] for e in examples])
    assert noise.mean() == pytest.approx(0.5, abs=0.01) and noise.std() == pytest.approx(12**-0.5, abs=0.01)
    noise = torch.cat([e.inputs[:, 0] for e in add(length=50, convention="code").split("validation")[:]])
    assert noise.mean() == pytest.approx(0, abs=0.01) and noise.std() == pytest.approx(3**-0.5, abs=0.01)


@pytest.mark.parametrize("make", [add, partial(add, convention="code"), multiply])
def test_where_padding_is_read_the_same_sequences_have_zeros_up_to_the_longest(make):
    own = make(length=40, longest=59).split("test")[:]
    padded = make(length=40, longest=60, read_padding=True).split("test")[:]
    assert len({len(e.inputs) for e in own}) == 20
    for short, long in zip(own, padded, strict=True):
        T = len(short.inputs)
        assert long.inputs.shape == (60, 2) and long.target == short.target
        assert torch.equal(long.inputs[:T], short.inputs) and not long.inputs[T:].any()
    batch = collate(padded[:50], "sequence")
    assert batch.lengths.tolist() == [60] * 50  # all are steps to the model


@pytest.mark.parametrize(("length", "padded"), [(50, 56), (100, 111), (500, 550), (1000, 1100)])
def test_read_padding_has_the_lengths_of_the_authors_code(length, padded):
    sequences = [e.inputs for e in multiply(length=length, read_padding=True).split("test")[:]]
    ends = {int((x[:, 1] == -1).nonzero().max()) + 1 for x in sequences}
    assert {len(x) for x in sequences} == {padded}
    assert min(ends) == length and length < max(ends) <= padded - 1
    (same,) = {len(e.inputs) for e in add(length=25, longest=25, read_padding=True).split("test")[:]}
    assert same == 25


def test_a_perfect_prediction_solves_a_padded_batch():
    task = multiply()
    batch = collate(task.split("test")[:100], task.per)
    assert len(set(batch.lengths.tolist())) > 1
    loss = task.loss(batch.targets + 0.1, batch)
    assert task.score(batch.targets, batch) == 1
    assert float(loss.total / loss.count) == pytest.approx(0.01, rel=1e-4)


@pytest.mark.parametrize("make", [add, multiply])
def test_the_baseline_is_the_mean(make):
    task = make()
    test, validation = (torch.cat([e.target for e in task.split(split)[:]]) for split in ("test", "validation"))
    answer = validation.mean()
    batch = collate(task.split("test")[:1000], task.per)
    assert task.baseline() == pytest.approx(task.score(answer.expand(1000, 1), batch))
    assert task.baseline() == pytest.approx(float(((test - answer).abs() < 0.04).double().mean()))
    if make is add:  # the sum has the density 1 - |y - 1|
        assert task.baseline() == pytest.approx(1 - 0.96**2, abs=0.025)


def test_fresh_sequences_are_others_in_each_epoch_and_the_same_in_each_run():
    def epoch(number: int, **options) -> list[torch.Tensor]:
        batches = loader(add(size=40), "train", 8, order="fresh", **options)
        batches.batch_sampler.set_epoch(number)
        return [sequence[sequence[:, 1] != 0].flatten() for batch in batches for sequence in batch.inputs]

    def marks(sequences: list[torch.Tensor]) -> set[tuple[float, ...]]:
        return {tuple(sequence.tolist()) for sequence in sequences}

    first, second, third = (marks(epoch(number)) for number in range(3))
    assert [len(one) for one in (first, second, third)] == [40, 40, 40]
    assert first.isdisjoint(second) and first.isdisjoint(third) and second.isdisjoint(third)
    assert marks(epoch(1)) == second and marks(epoch(1, limit=16)).isdisjoint(marks(epoch(0, limit=16)))
    assert first == marks([e.inputs[e.inputs[:, 1] != 0].flatten() for e in add(size=40).split("train")])
