"""Dropout from random bytes: the share and the mean, what the seed rules, and gradients."""

import math

import pytest
import torch

from rtx.nn.kernels.dropout import Masks, dropout, relu_dropout


@pytest.mark.parametrize("dropout", [0.001, 0.05, 0.1, 0.35, 0.9])
def test_masks_hide_the_expected_share_of_every_place(dropout):
    masks = Masks(dropout, seed=5)
    drawn = torch.stack([masks.draw(torch.Size((2, 50, 40))).double() for _ in range(100)])
    assert set(drawn.unique().tolist()) == {0, 1}
    error = 5 * math.sqrt(dropout * (1 - dropout))  # five standard deviations of one number's mean
    assert abs(drawn.mean() - (1 - dropout)) < error / math.sqrt(drawn.numel() / 2)
    assert (drawn.mean((0, 1, 2)) - (1 - dropout)).abs().max() < error / math.sqrt(100 * 2 * 50 / 2)
    neighbours = (drawn[..., 1:] - drawn.mean()) * (drawn[..., :-1] - drawn.mean())
    assert abs(neighbours.mean()) < 0.01 * drawn.var()


@pytest.mark.parametrize("dropout", [255 / 256, 255 / 256 - 1e-9])
def test_a_row_with_the_greatest_share_at_the_greatest_rate_is_not_kept_whole(dropout, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, 1 - 2**-24))
    assert Masks(dropout, seed=5).draw(torch.Size((50, 256))).double().mean() < 2 / 256


@pytest.mark.parametrize("impl", ["fused", "torch"])
def test_the_others_are_scaled_and_the_gradient_goes_where_the_numbers_went(impl):
    torch.manual_seed(0)
    x = torch.randn(7, 5, 11, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.3, impl=impl)
    kept = y != 0
    assert 0.6 < kept.double().mean() < 0.8
    torch.testing.assert_close(y[kept], x[kept] / 0.7, rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, kept.double() / 0.7, rtol=0, atol=1e-12)


def test_the_seed_rules_it_and_each_call_draws_anew():
    x = torch.ones(9, 33, dtype=torch.bfloat16)
    torch.manual_seed(1)
    first, second = dropout(x, 0.5), dropout(x, 0.5)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)
    assert first.dtype == x.dtype


def test_bytes_cannot_hide_nearly_everything():
    x = torch.ones(3, 4)
    assert dropout.choose(x.double(), 0.9) == "fused"
    assert dropout.choose(x, 0.999) == "torch"


@pytest.mark.parametrize("impl", ["fused", "torch", "native"])
@pytest.mark.parametrize("shape", [(7, 5, 70), (3, 16), (2, 1), (0, 4)])
def test_of_the_rectified_is_one_after_the_other(impl, shape):
    torch.manual_seed(0)
    x, weight = (torch.randn(shape).requires_grad_() for _ in range(2))

    def outputs_and_gradients(run):
        torch.manual_seed(1)
        y = run(x)
        plain, gradient = (
            torch.autograd.grad((y * weight).sum(), x, retain_graph=True, create_graph=again)[0]
            for again in (False, True)
        )
        return y, plain, gradient, *torch.autograd.grad(gradient.square().sum(), weight)

    found = outputs_and_gradients(lambda x: relu_dropout(x, 0.3, impl=impl))
    expected = outputs_and_gradients(lambda x: dropout(x.relu(), 0.3, impl=impl))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=0)


def test_what_is_no_number_stays_visible_behind_the_rectifier_and_on_the_way_back():
    x = torch.full((4, 40), torch.nan).requires_grad_()
    y = relu_dropout(x, 0.3, impl="native")
    for again in (True, False):
        (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=again)
        assert y.isnan().all() and gradient.all()  # nothing has made it zero


@pytest.mark.parametrize("impl", ["native", "fused", "torch"])
def test_a_number_alone_is_dropped_or_scaled(impl):
    assert {float(dropout(torch.tensor(1.0), 0.5, impl=impl)) for _ in range(30)} == {0.0, 2.0}
