"""Sequences of different lengths: what is read of a source, and each sequence backwards."""

import torch

from rtx.nn.padding import read_source, reverse


def test_each_sentence_is_reversed_within_its_own_length():
    assert reverse(torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([3, 2])).tolist() == [[3, 2, 1], [5, 4, 6]]


def test_the_padding_of_a_source_may_have_any_values():
    source = torch.tensor([[3, 4, -100], [2, 99, 99]])
    read, lengths = read_source(source, torch.tensor([2, 1]), 5)
    assert read.tolist() == [[3, 4, 0], [2, 0, 0]] and lengths.tolist() == [2, 1]
    assert read_source(source.clamp(0, 4), None, 5)[1].tolist() == [3, 3]
