"""The two-symbol temporal order problem: every sequence by its definition, and the ceiling of who knows no order."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.tasks.task import collate
from rtx.tasks.toy import temporal_order
from rtx.tasks.toy.temporal_order import CLASSES, SYMBOLS


def text_of(example) -> str:
    return "".join(SYMBOLS[i] for i in example.inputs.argmax(1))


@settings(max_examples=80)
@given(length=st.integers(10, 300), seed=st.integers(0, 10**6), index=st.integers(0, 999))
def test_every_sequence_follows_the_definition(length, seed, index):
    example = temporal_order(length=length, seed=seed).split("validation")[index]
    text = text_of(example)
    steps = len(text)
    assert length <= steps <= 1.1 * length
    assert example.inputs.shape == (steps, 8) and (example.inputs.sum(1) == 1).all()
    assert text[0] == "E" and text[-1] == "B" and set(text[1:-1]) <= set("abcdXY")
    places = [t for t, symbol in enumerate(text) if symbol in "XY"]
    assert "".join(text[t] for t in places) == CLASSES[example.target]
    first, second = places
    assert steps // 10 <= first <= steps / 5 and steps // 2 <= second <= 0.6 * steps


def test_at_length_100_the_symbols_are_where_hochreiter_and_schmidhuber_have_them():
    texts = list(map(text_of, temporal_order(length=100).split("train")[:5000]))
    places = [[t for t, symbol in enumerate(text) if symbol in "XY"] for text in texts if len(text) == 100]
    assert {first for first, _ in places} == set(range(10, 21))
    assert {second for _, second in places} == set(range(50, 61))
    drawn = Counter("".join(texts))
    assert all(abs(drawn[s] / sum(drawn[one] for one in "abcd") - 0.25) < 0.01 for s in "abcd")


def test_a_perfect_answer_is_100_percent_and_the_commonest_class_the_baseline():
    task = temporal_order(length=30)
    batch = collate(task.split("test")[:1000], task.per)
    assert batch.inputs.shape == (1000, 33, 8) and batch.targets.shape == (1000,)
    assert task.score(torch.eye(4)[batch.targets], batch) == 100
    constants = [task.score(torch.eye(4)[[answer] * 1000], batch) for answer in range(4)]
    assert sum(constants) == pytest.approx(100) and task.baseline() == pytest.approx(max(constants))
    uniform = task.loss(torch.zeros(1000, 4), batch)
    torch.testing.assert_close(uniform.total / uniform.count, torch.tensor(4.0).log())
