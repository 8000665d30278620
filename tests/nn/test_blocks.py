"""The feed-forward network, the residual connection and positions against the reference."""

import pytest
import torch

from rtx.nn import FeedForward, Residual, reference, sinusoidal_positions

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])


def at_each_position(function, x: torch.Tensor) -> torch.Tensor:
    return torch.stack([function(row) for row in x.flatten(0, 1)]).view(*x.shape[:2], -1)


def test_feed_forward_equals_the_reference_and_is_four_times_as_wide_inside():
    layer, u = FeedForward(4, 7).double(), torch.randn(2, 3, 4, dtype=torch.float64)
    expected = at_each_position(lambda row: reference.feed_forward(row, *layer.parameters()), u)
    torch.testing.assert_close(layer(u), expected, rtol=0, atol=1e-12)
    assert FeedForward(5).expand.out_features == 20


@NORMS
def test_residual_equals_the_reference(norm):
    torch.manual_seed(0)
    sublayer = torch.nn.Linear(4, 4).double()
    layer = Residual(sublayer, 4, norm).double()
    torch.nn.init.normal_(layer.norm.weight), torch.nn.init.normal_(layer.norm.bias)
    x = torch.randn(2, 3, 4, dtype=torch.float64)

    def one(row: torch.Tensor) -> torch.Tensor:
        gain, bias = layer.norm.weight, layer.norm.bias
        if norm == "post":
            return reference.layer_norm(row + sublayer(row), gain, bias)
        return row + sublayer(reference.layer_norm(row, gain, bias))

    torch.testing.assert_close(layer(x), at_each_position(one, x), rtol=0, atol=1e-12)


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


@pytest.mark.parametrize("d_model", [1, 2, 5, 16])
def test_positions_equal_the_reference_from_any_start(d_model):
    like, expected = torch.zeros(1, dtype=torch.float64), reference.sinusoidal_positions(50, d_model)
    torch.testing.assert_close(sinusoidal_positions(50, d_model, like), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(sinusoidal_positions(20, d_model, like, start=30), expected[30:], rtol=0, atol=1e-12)


def test_positions_far_out_are_exact_in_low_precision():
    far = sinusoidal_positions(2_000, 8, torch.zeros(1, dtype=torch.bfloat16))[-1]
    assert far.dtype == torch.bfloat16
    torch.testing.assert_close(far.double(), reference.sinusoidal_positions(2_000, 8)[-1], rtol=0, atol=0.01)


def test_the_layer_norm_of_the_r_transformers_code_differs_for_small_inputs():
    torch.manual_seed(0)
    x = torch.randn(160, dtype=torch.float64)
    x = 0.0106 * (x - x.mean()) / x.std(correction=0)
    ours = Residual(torch.nn.Identity(), 160).norm.double()(x)
    theirs = (x - x.mean()) / (x.std() + 1e-6)
    assert [round(y.norm().item() / 160**0.5, 3) for y in (ours, theirs)] == [0.958, 0.997]
