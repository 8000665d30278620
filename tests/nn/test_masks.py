"""Queries that may see nothing get zeros, padding of a source may hold anything, and which derivatives there are."""

import math

import pytest
import torch
from comparison import NATIVE
from torch.nn.attention import SDPBackend, sdpa_kernel

from rtx.nn import MultiHeadAttention, RelativeAttention, causal_mask, implementation
from rtx.nn.additive_attention import AdditiveAttention
from rtx.nn.cross_attention import CrossAttention
from rtx.nn.local_attention import LocalAttention
from rtx.nn.ops.pooling import pooling
from rtx.nn.relative import LinearBiasAttention, RotaryAttention, XLAttention

T = 9
BRICKS = {
    "plain": lambda: MultiHeadAttention(8, 2),
    "relative": lambda: RelativeAttention(8, 2, 3),
    "rotary": lambda: RotaryAttention(8, 2),
    "alibi": lambda: LinearBiasAttention(8, 2),
    "xl": lambda: XLAttention(8, 2),
}


def test_padding_of_a_source_may_hold_anything():
    x, source, real = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.arange(5) < torch.tensor([[5], [2]])
    for layer, query in ((CrossAttention(8, 2), x), (AdditiveAttention(8), x[:, 0])):
        expected = layer(query, layer.encode(source, real))
        found = layer(query, layer.encode(source.masked_fill(~real[..., None], math.nan), real))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", BRICKS)
def test_a_query_that_may_see_nothing_gets_zeros_and_no_gradient_is_spoilt(name):
    layer, x = BRICKS[name](), torch.randn(1, T, 8, requires_grad=True)
    mask = causal_mask(T)
    mask[3] = False
    y = layer(x, mask)
    assert not y[0, 3].any() and not layer.weights(x, mask)[0, :, 3].any()
    torch.testing.assert_close(y[0, 4:], layer(x)[0, 4:])
    with torch.autograd.set_detect_anomaly(True):
        layer(x, mask).square().sum().backward()
    assert all(p.grad.isfinite().all() for p in [x, *layer.parameters()])


def test_a_source_of_padding_alone_gives_zeros():
    real, source = torch.zeros(1, 3, dtype=torch.bool), torch.randn(1, 3, 8)
    cross, additive = CrossAttention(8, 2), AdditiveAttention(8)
    assert not cross(source, cross.encode(source, real)).any()
    assert not cross.weights(source, cross.encode(source, real)).any()
    assert not any(part.any() for part in additive(source[:, 0], additive.encode(source, real)))


@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("impl", [NATIVE, "blocks", "torch"])
def test_an_empty_sequence_has_the_context_zero(impl, scored):
    torch.manual_seed(0)
    x, weight = torch.randn(3, 4, 2, requires_grad=True), torch.randn(5, 2, requires_grad=True)
    scorer = (torch.randn(1, 5), torch.randn(1)) if scored else (None, None)
    for lengths in ([0, 4, 2], [0, 0, 0]):
        c = pooling(x, torch.tensor(lengths), weight, torch.randn(5), *scorer, "coded", impl=impl)
        assert [bool(row.any()) for row in c] == [n > 0 for n in lengths]
        assert all(g.isfinite().all() for g in torch.autograd.grad(c.sum(), [x, weight]))


LAYERS = {
    "causal": lambda x: MultiHeadAttention(8, 2)(x),
    "masked": lambda x: MultiHeadAttention(8, 2)(x, causal_mask(T)),
    "one step": lambda x: MultiHeadAttention(8, 2).read(x[:, :1])[0],
    "source": lambda x: (layer := CrossAttention(8, 2))(x, layer.encode(x, torch.ones(2, T, dtype=torch.bool))),
    "local": lambda x: LocalAttention(8, 2, 3)(x),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_torch_version_has_second_derivatives(name):
    def second() -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.randn(2, T, 8, requires_grad=True)
        (first,) = torch.autograd.grad(LAYERS[name](x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    with implementation("torch"):
        found = second()
    with sdpa_kernel(SDPBackend.MATH):
        torch.testing.assert_close(second(), found)


@pytest.mark.parametrize("impl", [NATIVE, "blocks", "sdpa", "torch"])
def test_each_implementation_with_dropout_hides_a_later_position(impl):
    layer, x, found = MultiHeadAttention(8, 2, dropout=0.2), torch.randn(1, 130, 8), []
    for shift in (0.0, 9.0):
        torch.manual_seed(0)
        x[:, 70] += shift
        with implementation(impl, "causal_attention"):
            found.append(layer(x))
    same = (found[0] == found[1]).all(-1)[0]
    assert same[:70].all() and not same[70]
