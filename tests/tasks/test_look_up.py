"""Look-up: every sequence by its definition; the score is that of the answers alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.tasks.task import IGNORED, collate
from rtx.tasks.toy import look_up


@settings(max_examples=60)
@given(pairs=st.integers(2, 10), seed=st.integers(0, 10**6), index=st.integers(0, 999))
def test_every_question_has_the_digit_behind_its_letter(pairs, seed, index):
    task = look_up(pairs=pairs, seed=seed)
    inputs, target = task.split("test")[index]
    text, number = task.texts[0].decode(inputs.tolist()), len(inputs) // 4
    assert 2 <= number <= pairs
    book = dict(zip(text[: 2 * number : 2], text[1 : 2 * number : 2], strict=True))
    letters, marks = text[2 * number :: 2], text[2 * number + 1 :: 2]
    assert sorted(letters) == sorted(book) and set(marks) == {"?"} and "".join(book.values()).isdigit()
    assert (target[: 2 * number + 1] == IGNORED).all() and (target[2 * number :: 2] == IGNORED).all()
    assert task.texts[0].decode(target[2 * number + 1 :: 2].tolist()) == "".join(book[letter] for letter in letters)


def test_the_score_is_the_share_of_right_answers():
    task = look_up(pairs=5)
    batch = collate(task.split("test")[:300], task.per)
    answers = batch.targets[batch.targets != IGNORED]
    right = torch.eye(task.outputs)[answers]
    assert task.score(right, batch) == 100
    one = torch.eye(task.outputs)[torch.full_like(answers, 13)]
    assert task.score(one, batch) == pytest.approx(100 * float((answers == 13).float().mean()), abs=1e-3)
    assert task.baseline() == pytest.approx(10, abs=2)
