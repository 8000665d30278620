"""Sequences of different lengths: what is read of a source, and each sequence backwards."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn.padding import read_source, reverse


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
