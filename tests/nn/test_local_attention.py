"""Sliding-window attention against loops over its windows, and rotary positions."""

import math

import pytest
import torch
from comparison import Largest

from rtx.nn.local_attention import LocalAttention
from rtx.nn.position import rotate


def test_the_scores_of_a_piece_are_all_that_exists_at_a_time():
    largest = []
    for T in (400, 800):
        with Largest() as seen:
            LocalAttention(4, 2, 10)(torch.randn(1, T, 4, requires_grad=True)).sum().backward()
        largest.append(seen.numbers)
    assert largest[0] <= 2 * 400 * 20  # heads · T · 2 W; full attention has heads · T²
    assert largest[1] == largest[0]  # a piece after the other


def test_the_weights_gather_the_values_to_the_output():
    torch.manual_seed(0)
    layer, x = LocalAttention(8, 2, 3).double(), torch.randn(2, 7, 8, dtype=torch.float64)
    weights = layer.weights(x)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 7).double())
    assert torch.equal(weights[0, 0] > 0, torch.ones(7, 7).tril().triu(-2).bool())
    gathered = weights @ layer.value(x)[:, None]
    torch.testing.assert_close(layer.output(gathered.transpose(1, 2).flatten(2)), layer(x), rtol=0, atol=1e-10)
    assert torch.equal(layer.introspect(x)["weights"], weights)


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    layer, x = LocalAttention(8, 2, 3, dropout=0.5), torch.randn(2, 7, 8)
    assert not torch.equal(layer.train()(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


def test_angles_of_a_rotation_are_in_float32_at_least():
    half = rotate(torch.ones(1, 2, dtype=torch.bfloat16), 1001)[0, 0].item()
    assert half == pytest.approx(math.cos(1001) - math.sin(1001), abs=0.02)
