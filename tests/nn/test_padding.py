"""Sequences of different lengths: what is read of a source, and each sequence backwards."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn.padding import check_target, read_source, reverse


@settings(max_examples=30)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_each_sentence_is_reversed_within_its_own_length(lengths):
    x = torch.arange(len(lengths) * 6 * 2).view(-1, 6, 2)
    reversed_x = reverse(x, torch.tensor(lengths))
    for row, original, n in zip(reversed_x.tolist(), x.tolist(), lengths, strict=True):
        assert row == original[:n][::-1] + original[n:]
    assert torch.equal(reverse(reversed_x, torch.tensor(lengths)), x)


def test_the_padding_of_a_source_may_have_any_values():
    source = torch.tensor([[3, 4, -100], [2, 99, 99]])
    read, lengths = read_source(source, torch.tensor([2, 1]), 5)
    assert read.tolist() == [[3, 4, 0], [2, 0, 0]] and lengths.tolist() == [2, 1]
    assert read_source(source.clamp(0, 4), None, 5)[1].tolist() == [3, 3]


@pytest.mark.parametrize(
    ("source", "lengths", "message"),
    [
        (torch.zeros(2, 0).long(), None, r"source: .*got \(2, 0\)"),
        (torch.zeros(0, 3).long(), None, r"source: .*got \(0, 3\)"),
        (torch.zeros(3).long(), None, r"source: .*got \(3,\)"),
        (torch.zeros(2, 3), None, "source: .*got torch.float32"),
        ([[1, 2]], None, "source: .*got list"),
        (torch.tensor([[1, 5]]), None, "source: .*got 5"),
        (torch.tensor([[-1, 4]]), torch.tensor([1]), "source: .*got -1"),
        (torch.ones(2, 3).long(), torch.tensor([3, 0]), r"source_lengths: .*got \[3, 0\]"),
        (torch.ones(2, 3).long(), torch.tensor([4, 1]), r"source_lengths: .*got \[4, 1\]"),
        (torch.ones(2, 3).long(), torch.tensor([3]), r"source_lengths: .*got \[3\]"),
        (torch.ones(2, 3).long(), torch.tensor([1.0, math.pi]), r"source_lengths: .*got \[1\.0, 3\.1"),
    ],
)
def test_bad_sources_are_refused(source, lengths, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        read_source(source, lengths, 5)


def test_a_target_for_another_number_of_sources_is_refused():
    with pytest.raises(ValueError, match="^target: .*2.*got 3"):
        check_target(torch.ones(3, 4).long(), torch.ones(2, 4).long(), 5)
