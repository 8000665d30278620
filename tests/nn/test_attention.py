"""Attention against its naive twin, against itself without the fast path, and its masks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn import MultiHeadAttention, attention, causal_mask, naive


class Explicit(MultiHeadAttention):
    """The same scores, overridden: so the fast path is not taken."""

    def scores(self, q, k):
        return super().scores(q, k)


def pair(d_model: int, heads: int, dropout: float = 0.0) -> tuple[MultiHeadAttention, Explicit]:
    fast, slow = (
        MultiHeadAttention(d_model, heads, dropout).double(),
        Explicit(d_model, heads, dropout).double(),
    )
    slow.load_state_dict(fast.state_dict())
    return fast, slow


@settings(max_examples=20)
@given(B=st.integers(1, 3), T=st.integers(1, 7), heads=st.integers(1, 4), width=st.integers(1, 4))
def test_equals_its_naive_twin(B, T, heads, width):
    torch.manual_seed(T)
    layer = MultiHeadAttention(heads * width, heads).double()
    x = torch.randn(B, T, heads * width, dtype=torch.float64)
    expected = naive.multi_head_attention(x, *layer.state_dict().values(), heads=heads)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True])
def test_fast_path_equals_explicit_weights_with_all_gradients(masked):
    torch.manual_seed(0)
    fast, slow = pair(12, 3)
    mask = (torch.rand(9, 9) < 0.5) | torch.eye(9, dtype=torch.bool) if masked else None
    x_fast = torch.randn(2, 9, 12, dtype=torch.float64, requires_grad=True)
    x_slow = x_fast.detach().clone().requires_grad_()
    a, b = fast(x_fast, mask), slow(x_slow, mask)
    torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    weight = torch.randn_like(a)
    (a * weight).sum().backward()
    (b * weight).sum().backward()
    torch.testing.assert_close(x_fast.grad, x_slow.grad, rtol=0, atol=1e-10)
    for p, q in zip(fast.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("queries", "block"), [(9, 1), (9, 4), (5, 2), (1, 1)])
def test_blocks_of_queries_equal_all_at_once_also_for_the_last_of_many_keys(monkeypatch, queries, block):
    torch.manual_seed(0)
    fast, slow = pair(12, 3)
    monkeypatch.setattr(attention, "BLOCK", block)
    q, k, v = (torch.randn(2, 3, length, 4, dtype=torch.float64) for length in (queries, 9, 9))
    torch.testing.assert_close(slow._attend(q, k, v), fast._attend(q, k, v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("index", [0, 1])
def test_dropout_keeps_the_mean_and_acts_in_training_only(index):
    torch.manual_seed(0)
    layer = pair(8, 2, dropout=0.5)[index]
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    with torch.no_grad():
        mean = torch.stack([layer(x) for _ in range(3000)]).mean(0)
        assert not torch.equal(layer(x), layer(x))
        layer.eval()
        torch.testing.assert_close(mean, layer(x), rtol=0, atol=0.05)


def test_weights_are_causal_and_sum_to_one():
    layer, x = MultiHeadAttention(8, 2), torch.randn(3, 5, 8)
    weights = layer.weights(x)
    assert weights.shape == (3, 2, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 5))
    assert weights.triu(1).abs().max() == 0


def test_weights_refuse_what_the_layer_refuses():
    with pytest.raises(ValueError, match=r"x: expected shape \(batch, time, 8\), got \(3, 5, 7\)"):
        MultiHeadAttention(8, 2).weights(torch.randn(3, 5, 7))


def test_a_full_mask_lets_every_position_see_every_other():
    layer, x = MultiHeadAttention(4, 1), torch.randn(1, 5, 4)
    assert (layer.weights(x, torch.ones(5, 5, dtype=torch.bool)) > 0).all()


def test_causal_mask_is_true_where_one_may_attend():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 3).tolist() == [[True, True, False], [True, True, True]]


def test_a_causal_mask_with_fewer_keys_than_queries_is_refused_as_the_first_would_see_nothing():
    with pytest.raises(ValueError, match="keys: expected at least 5, one for each query, got 3"):
        causal_mask(5, 3)


@pytest.mark.parametrize(("sizes", "name"), [((-1,), "queries"), (("5",), "queries"), ((2, 3.0), "keys")])
def test_a_causal_mask_of_no_size_is_refused(sizes, name):
    with pytest.raises(ValueError, match=f"{name}: expected a whole number of at least 1"):
        causal_mask(*sizes)


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(5, 5),
        *(torch.ones(*n, dtype=torch.bool) for n in [(4, 5), (2, 5, 5), (3, 1, 5, 5), (2, 3, 5, 5)]),
        torch.ones(5, 5, dtype=torch.bool, device="meta"),
    ],
)
def test_a_mask_of_another_kind_is_refused(mask):
    with pytest.raises(ValueError, match=r"mask: expected bool of shape \(5, 5\) or \(2, 1, 5, 5\) on cpu, got"):
        MultiHeadAttention(4, 2)(torch.randn(2, 5, 4), mask)


def test_a_mask_that_is_no_tensor_is_refused():
    with pytest.raises(ValueError, match="mask: expected a torch.Tensor, got ndarray"):
        MultiHeadAttention(4, 2)(torch.randn(2, 5, 4), torch.ones(5, 5, dtype=torch.bool).numpy())


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"heads: expected a divisor of d_model = 6, \[1, 2, 3, 6\], got 4"):
        MultiHeadAttention(6, 4)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, "abc", False, None])
def test_dropout_outside_its_range_is_refused(dropout):
    with pytest.raises(ValueError, match="dropout: expected a number from 0 up to"):
        MultiHeadAttention(4, 2, dropout)
