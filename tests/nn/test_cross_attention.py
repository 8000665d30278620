"""Additive and multi-head attention to a source, against loops and torch, and their padding."""

import pytest
import torch
from comparison import assert_near, outputs_and_gradients

from rtx.nn.cross_attention import CrossAttention
from rtx.nn.padding import real_positions

LENGTHS = torch.tensor([5, 2, 1])
REAL = real_positions(LENGTHS, 5)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("padded", [False, True])
def test_cross_attention_equals_torchs_with_all_gradients(padded):
    torch.manual_seed(0)
    ours = CrossAttention(8, 2).double()
    theirs = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True).double()
    projections = [ours.query.weight, ours.key.weight, ours.value.weight]
    theirs.load_state_dict({"in_proj_weight": torch.cat(projections), "out_proj.weight": ours.output.weight})
    real = REAL if padded else torch.ones_like(REAL)
    x, source = numbers(3, 4, 8), numbers(3, 5, 8)
    encoded = ours.encode(source, real)
    expected, weights = theirs(x, source, source, ~real, average_attn_weights=False)
    torch.testing.assert_close(ours.weights(x, encoded), weights, rtol=0, atol=1e-10)
    y, d_x, d_source, *d_projections = outputs_and_gradients(ours(x, encoded), [x, source, *projections])
    found = [y, d_x, d_source, torch.cat(d_projections)]
    assert_near(found, outputs_and_gradients(expected, [x, source, theirs.in_proj_weight]), 1e-10)


def test_dropout_is_on_the_weights_and_in_training_only():
    torch.manual_seed(0)
    layer = CrossAttention(8, 2, 0.5).double()
    x, encoded = numbers(1, 4, 8), layer.encode(numbers(1, 5, 8), REAL[:1])
    with torch.no_grad():
        mean = torch.stack([layer(x, encoded) for _ in range(3000)]).mean(0)
        torch.testing.assert_close(mean, layer.eval()(x, encoded), rtol=0, atol=0.05)
        assert torch.equal(layer(x, encoded), layer(x, encoded))
