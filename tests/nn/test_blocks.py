"""Feed-forward, residual and positions against their naive twins."""

import math

import pytest
import torch

from rtx.nn import FeedForward, Residual, naive, sinusoidal_positions


def test_feed_forward_equals_its_naive_twin():
    layer, u = FeedForward(4, 7).double(), torch.randn(2, 3, 4, dtype=torch.float64)
    weights = layer.expand.weight, layer.expand.bias, layer.contract.weight, layer.contract.bias
    expected = torch.stack([naive.feed_forward(row, *weights) for row in u.flatten(0, 1)]).view(2, 3, 4)
    torch.testing.assert_close(layer(u), expected, rtol=0, atol=1e-12)


def test_feed_forward_is_four_times_as_wide_inside():
    assert FeedForward(5).expand.out_features == 20


def test_the_feed_forward_network_drops_hidden_units_in_training_only():
    layer = FeedForward(1000, 1000, dropout=0.25)
    for part, weight, bias in ((layer.expand, torch.zeros(1000, 1000), 1.0), (layer.contract, torch.eye(1000), 0.0)):
        part.weight.data, part.bias.data = weight, torch.full((1000,), bias)
    check_drops(layer, lambda: layer(torch.randn(40, 1000)), torch.ones(40, 1000))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_residual_drops_the_sublayers_output_in_training_only(norm):
    layer, x = Residual(torch.nn.Identity(), 1000, norm, dropout=0.25), torch.randn(40, 1000)
    layer.norm = torch.nn.Identity()
    check_drops(layer, lambda: layer(x) - x, x)


def check_drops(layer, output, whole):
    """A quarter of `whole` is hidden in training, the rest scaled; otherwise all is there."""
    dropped = output()
    hidden = dropped.abs() < 1e-6
    assert abs(hidden.float().mean().item() - 0.25) < 0.02
    torch.testing.assert_close(dropped, torch.where(hidden, 0.0, whole / 0.75), rtol=0, atol=1e-5)
    layer.eval()
    torch.testing.assert_close(output(), whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_residual_equals_its_naive_twin(norm):
    torch.manual_seed(0)
    sublayer = torch.nn.Linear(4, 4).double()
    layer = Residual(sublayer, 4, norm).double()
    torch.nn.init.normal_(layer.norm.weight), torch.nn.init.normal_(layer.norm.bias)
    x = torch.randn(2, 3, 4, dtype=torch.float64)

    def one(row):
        gain, bias = layer.norm.weight, layer.norm.bias
        if norm == "post":
            return naive.layer_norm(row + sublayer(row), gain, bias)
        return row + sublayer(naive.layer_norm(row, gain, bias))

    expected = torch.stack([one(row) for row in x.flatten(0, 1)]).view(2, 3, 4)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)


def test_the_authors_norm_is_ours_with_its_gain_scaled():
    """Dividing by the unbiased deviation is LayerNorm with gain √(1 - 1/D), but for the place of ε."""
    x = torch.randn(10, 160, dtype=torch.float64)
    theirs = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
    ours = torch.nn.functional.layer_norm(x, (160,), torch.full((160,), math.sqrt(1 - 1 / 160)).double())
    torch.testing.assert_close(ours, theirs, rtol=0, atol=5e-5)


def test_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="norm: 'prae' is unknown, allowed are post, pre; did you mean 'pre'"):
        Residual(torch.nn.Identity(), 4, "prae")


@pytest.mark.parametrize("d_model", [1, 2, 5, 16])
def test_positions_equal_their_naive_twin(d_model):
    like = torch.zeros(1, dtype=torch.float64)
    expected = naive.sinusoidal_positions(50, d_model)
    torch.testing.assert_close(sinusoidal_positions(50, d_model, like), expected, rtol=0, atol=1e-12)


def test_positions_stay_exact_far_out_in_low_precision():
    far = sinusoidal_positions(20_000, 8, torch.zeros(1, dtype=torch.bfloat16))[-1]
    expected = naive.sinusoidal_positions(20_000, 8)[-1]
    assert far.dtype == torch.bfloat16
    torch.testing.assert_close(far.double(), expected, rtol=0, atol=0.01)
