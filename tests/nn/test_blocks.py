"""The feed-forward network, the residual connection and positions against the reference."""

import pytest
import torch

from rtx.nn import FeedForward, Residual, reference, sinusoidal_positions

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])


def check_dropout(layer: torch.nn.Module, output, whole: torch.Tensor) -> None:
    """Check that a quarter of `whole` is zero in training and the rest is scaled, and that evaluation has all of it."""
    dropped = output()
    hidden = dropped.abs() < 1e-6
    assert abs(hidden.float().mean().item() - 0.25) < 0.02
    torch.testing.assert_close(dropped, torch.where(hidden, 0.0, whole / 0.75), rtol=0, atol=1e-5)
    layer.eval()
    torch.testing.assert_close(output(), whole, rtol=0, atol=1e-5)


def test_the_feed_forward_network_drops_hidden_units_in_training_only():
    layer = FeedForward(1000, 1000, dropout=0.25)
    for part, weight, bias in ((layer.expand, torch.zeros(1000, 1000), 1.0), (layer.contract, torch.eye(1000), 0.0)):
        part.weight.data, part.bias.data = weight, torch.full((1000,), bias)
    check_dropout(layer, lambda: layer(torch.randn(40, 1000)), torch.ones(40, 1000))


@NORMS
def test_residual_drops_the_sublayers_output_in_training_only(norm):
    layer, x = Residual(torch.nn.Identity(), 1000, norm, dropout=0.25), torch.randn(40, 1000)
    layer.norm = torch.nn.Identity()
    check_dropout(layer, lambda: layer(x) - x, x)


def test_positions_far_out_are_exact_in_low_precision():
    far = sinusoidal_positions(2_000, 8, torch.zeros(1, dtype=torch.bfloat16))[-1]
    assert far.dtype == torch.bfloat16
    torch.testing.assert_close(far.double(), reference.sinusoidal_positions(2_000, 8)[-1], rtol=0, atol=0.01)
