"""Sliding-window attention against full attention under a sliding mask; rotary positions see distances only."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from rtx.nn.local_attention import LocalAttention
from rtx.nn.rotary import rotate


def turned(v: torch.Tensor, t: int) -> torch.Tensor:
    """One vector at position t, its pairs as complex numbers times e^{iθt}."""
    K = len(v)
    pairs = torch.view_as_complex(v.view(K // 2, 2).contiguous())
    angles = torch.tensor([t * 10_000 ** (-2 * i / K) for i in range(K // 2)], dtype=torch.float64)
    return torch.view_as_real(pairs * torch.polar(torch.ones(K // 2, dtype=torch.float64), angles)).flatten()


def full_attention(layer: LocalAttention, x: torch.Tensor) -> torch.Tensor:
    """Every pair of positions scored, positions numbered from the sequence's start, one mask for all."""
    t = torch.arange(x.shape[1])
    mask = (t[:, None] >= t) & (t[:, None] - t < layer.window)
    heads = []
    for w_q in layer.query.weight.chunk(layer.heads):
        q, k, v = x @ w_q.T, x @ layer.key.weight.T, x @ layer.value.weight.T
        q, k = (torch.stack([torch.stack([turned(v, t) for t, v in enumerate(row)]) for row in y]) for y in (q, k))
        heads.append(F.scaled_dot_product_attention(q, k, v, mask))
    return layer.output(torch.cat(heads, -1))


@settings(max_examples=30)
@given(
    B=st.integers(1, 2),
    T=st.integers(1, 14),
    heads=st.integers(1, 3),
    pairs=st.integers(1, 2),
    window=st.integers(1, 16),
    seed=st.integers(0, 999),
)
def test_equals_full_attention_under_a_sliding_mask_with_all_gradients(B, T, heads, pairs, window, seed):
    torch.manual_seed(seed)
    D = 2 * pairs * heads
    layer = LocalAttention(D, heads, window).double()
    x, weight = torch.randn(2, B, T, D, dtype=torch.float64)
    results, gradients = [], []
    for function in (layer, lambda x: full_attention(layer, x)):
        layer.zero_grad()
        mine = x.clone().requires_grad_()
        y = function(mine)
        (y * weight).sum().backward()
        results.append(y)
        gradients.append([mine.grad, *(p.grad.clone() for p in layer.parameters())])
    torch.testing.assert_close(*results, rtol=0, atol=1e-10)
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


@settings(max_examples=20)
@given(T=st.integers(1, 20), window=st.integers(1, 9))
def test_streams_with_a_state_that_stops_growing(T, window):
    torch.manual_seed(0)
    layer, state, rows = LocalAttention(8, 2, window).double(), None, []
    x = torch.randn(2, T, 8, dtype=torch.float64)
    for t, x_t in enumerate(x.unbind(1)):
        y, state = layer.step(x_t, state)
        rows.append(y)
        assert [part.shape for part in state] == [(2, min(t + 1, window), 4)] * 2
    torch.testing.assert_close(torch.stack(rows, 1), layer(x), rtol=0, atol=1e-10)


def test_scores_are_made_for_two_windows_a_query_however_long_the_sequence():
    class Largest(TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for part in out if isinstance(out, tuple) else (out,):
                if isinstance(part, torch.Tensor):
                    self.elements = max(self.elements, part.untyped_storage().nbytes() // part.element_size())
            return out

    largest = []
    for T in (400, 800):
        with Largest() as seen:
            LocalAttention(4, 2, 10)(torch.randn(1, T, 4, requires_grad=True)).sum().backward()
        largest.append(seen.elements)
    assert largest[0] <= 2 * 400 * 20  # heads · T · 2 W, where full attention makes heads · T²
    assert largest[1] == 2 * largest[0]


def test_weights_are_those_that_make_the_output():
    torch.manual_seed(0)
    layer, x = LocalAttention(8, 2, 3).double(), torch.randn(2, 7, 8, dtype=torch.float64)
    weights = layer.weights(x)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 7).double())
    assert torch.equal(weights[0, 0] > 0, torch.ones(7, 7).tril().triu(-2).bool())
    gathered = weights @ layer.value(x)[:, None]
    torch.testing.assert_close(layer.output(gathered.transpose(1, 2).flatten(2)), layer(x), rtol=0, atol=1e-10)
    assert torch.equal(layer.inside(x)["attention"], weights)


def test_dropout_is_for_training():
    torch.manual_seed(0)
    layer, x = LocalAttention(8, 2, 3, dropout=0.5), torch.randn(2, 7, 8)
    assert not torch.equal(layer.train()(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


@settings(max_examples=30)
@given(first=st.integers(0, 1000), second=st.integers(0, 1000), shift=st.integers(0, 10_000))
def test_rotated_scores_depend_on_the_distance_only(first, second, shift):
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64, generator=generator)
    here = rotate(q, first) @ rotate(k, second).T
    there = rotate(q, first + shift) @ rotate(k, second + shift).T
    torch.testing.assert_close(here, there, rtol=0, atol=1e-9)


def test_rotated_scores_do_depend_on_the_distance_and_keep_the_length():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)
    scores = [(rotate(q, t) @ rotate(k).T).item() for t in range(5)]
    assert len({round(s, 6) for s in scores}) == 5
    torch.testing.assert_close(rotate(q, 7).norm(), q.norm())


def test_rotation_is_a_product_of_complex_numbers():
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    expected = torch.stack([torch.stack([turned(v, t + 3) for t, v in enumerate(row)]) for row in x])
    torch.testing.assert_close(rotate(x, 3), expected, rtol=0, atol=1e-12)


def test_angles_are_computed_in_float32_at_least():
    x = torch.ones(1, 2, dtype=torch.bfloat16)
    assert rotate(x, 1001)[0, 0].item() == pytest.approx(math.cos(1001) - math.sin(1001), abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LocalAttention(6, 2, 3), "heads: expected heads of even width in d_model = 6, got 2"),
        (lambda: LocalAttention(6, 4, 3), "heads: expected heads of even width in d_model = 6, got 4"),
        (lambda: LocalAttention(8, 2, 0), "window: expected a whole number of at least 1, got 0"),
        (lambda: LocalAttention(8, 2, 3, 1.0), "dropout: expected a number from 0 up to"),
        (lambda: LocalAttention(8, 2, 3)(torch.randn(2, 8)), r"x: expected shape \(batch, time, 8\), got \(2, 8\)"),
        (lambda: LocalAttention(8, 2, 3).inside(torch.randn(2, 0, 8)), "x: expected at least one sequence of at least"),
        (lambda: LocalAttention(8, 2, 3).step(torch.randn(2, 8), (torch.zeros(2, 1, 8),)), "state: expected"),
        (lambda: rotate(torch.randn(1, 3)), "x: expected an even width, .*, got 3"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
