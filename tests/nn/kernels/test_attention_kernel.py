"""Causal attention's kernels against loops and torch, their dropout, and what they keep for the backward pass."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd.graph import saved_tensors_hooks

from rtx.nn.kernels import attention as kernel
from rtx.nn.kernels.attention import causal_attention, explicit_attention


def heads(B: int, H: int, T: int, K: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    return [torch.randn(B, H, T, K, dtype=dtype).requires_grad_() for _ in range(3)]


def by_loops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Eq. 5, a query at a time."""
    rows = []
    for t in range(q.shape[2]):
        scores = torch.stack([(q[:, :, t] * k[:, :, s]).sum(-1) for s in range(t + 1)], -1) / math.sqrt(q.shape[3])
        alpha = scores.exp() / scores.exp().sum(-1, keepdim=True)
        rows.append(sum(alpha[..., s, None] * v[:, :, s] for s in range(t + 1)))
    return torch.stack(rows, 2)


def outputs_and_gradients(y: torch.Tensor, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    return [y, *torch.autograd.grad((y * weight).sum(), inputs)]


def seeded(run, seed: int = 3):
    torch.manual_seed(seed)
    return run()


@settings(max_examples=20)
@given(
    B=st.integers(1, 2),
    H=st.integers(1, 3),
    T=st.integers(1, 17),
    K=st.integers(1, 4),
    queries=st.sampled_from([1, 4, 5, 64]),
    scores=st.sampled_from([1, 60, 2**17]),
)
def test_fused_equals_the_loops_with_all_gradients_in_blocks_of_any_size(B, H, T, K, queries, scores):
    torch.manual_seed(T)
    inputs = heads(B, H, T, K)
    expected = outputs_and_gradients(by_loops(*inputs), inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "QUERIES", queries)
        patch.setattr(kernel, "SCORES", scores)
        found = outputs_and_gradients(causal_attention(*inputs, 0.0, impl="fused"), inputs)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_later_key_that_is_no_number_changes_nothing_before_it(value):
    q, k, v = (part.detach() for part in heads(1, 1, 6, 4))
    q = q.abs()  # a score of -inf is one that softmax can do without
    expected = causal_attention(q, k, v, 0.0, impl="fused")
    k[:, :, 3] = value
    found = causal_attention(q, k, v, 0.0, impl="fused")
    torch.testing.assert_close(found[:, :, :3], expected[:, :, :3], rtol=0, atol=0)
    assert not found[:, :, 3:].isfinite().any()


@pytest.mark.parametrize("T", [63, 64, 65, 200])
def test_fused_equals_torch_at_a_blocks_edges_with_all_gradients(T):
    torch.manual_seed(0)
    inputs = heads(2, 3, T, 5)
    fused, plain = (
        outputs_and_gradients(causal_attention(*inputs, 0.0, impl=impl), inputs) for impl in ("fused", "torch")
    )
    for a, b in zip(fused, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_great_scores_of_past_and_future_do_no_harm():
    torch.manual_seed(0)
    inputs = [x.detach().mul(40).requires_grad_() for x in heads(1, 2, 70, 4, torch.float32)]
    fused, plain = (
        outputs_and_gradients(causal_attention(*inputs, 0.0, impl=impl), inputs) for impl in ("fused", "torch")
    )
    for a, b in zip(fused, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * b.abs().max().item())


def test_values_of_the_future_weigh_exactly_nothing():
    torch.manual_seed(0)
    q, k, v = (x.detach() for x in heads(1, 2, 20, 4))
    before = causal_attention(q, k, v, 0.0, impl="fused")
    v[:, :, 10:] = 1e35
    assert torch.equal(causal_attention(q, k, v, 0.0, impl="fused")[:, :, :10], before[:, :, :10])


@pytest.mark.parametrize("dropout", [0.1, 0.35])
def test_with_dropout_it_equals_explicit_weights_under_its_masks(dropout):
    torch.manual_seed(0)
    inputs = heads(2, 3, 70, 4)
    seed = seeded(lambda: int(torch.randint(2**62, ())))
    fused = outputs_and_gradients(seeded(lambda: causal_attention(*inputs, dropout, impl="fused")), inputs)
    explicit = outputs_and_gradients(explicit_attention(*inputs, dropout, seed), inputs)
    for a, b in zip(fused, explicit, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_gradients_by_finite_differences_under_a_fixed_seed_also_twice_over():
    torch.manual_seed(0)
    inputs = heads(1, 2, 5, 2)

    def run(q, k, v):
        return seeded(lambda: causal_attention(q, k, v, 0.3, impl="fused"))

    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_the_seed_rules_dropout_and_no_other_state_does():
    inputs = heads(2, 2, 70, 4)
    first, again, other = (seeded(lambda: causal_attention(*inputs, 0.2), seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(*seeded(lambda: [causal_attention(*inputs, 0.2) for _ in range(2)]))


def test_dropout_leaves_the_mean():
    torch.manual_seed(0)
    inputs = [x.detach() for x in heads(1, 2, 9, 3)]
    mean = torch.stack([causal_attention(*inputs, 0.3, impl="fused") for _ in range(4000)]).mean(0)
    torch.testing.assert_close(mean, by_loops(*inputs), rtol=0, atol=0.06)


def test_half_precision_keeps_its_dtype_and_sums_in_float32():
    torch.manual_seed(0)
    half = [x.detach().bfloat16().requires_grad_() for x in heads(1, 2, 150, 4)]
    found = outputs_and_gradients(causal_attention(*half, 0.0, impl="fused"), half)
    assert {x.dtype for x in found} == {torch.bfloat16}
    torch.testing.assert_close(found[0].double(), by_loops(*[x.double() for x in half]), rtol=0.01, atol=0.01)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert causal_attention(*heads(1, 2, 9, 4, torch.float32), 0.5).dtype == torch.bfloat16


@pytest.mark.parametrize("impl", ["native", "fused"])
def test_fewer_keys_or_wider_values_are_left_to_torch(impl: str) -> None:
    """They would be read past their end."""
    q, k, v = (torch.randn(1, 2, 6, 4) for _ in range(3))
    for keys, values in ((k[:, :, :3], v[:, :, :3]), (k, torch.randn(1, 2, 6, 8)), (k[:, :1], v[:, :1])):
        assert causal_attention.choose(q, keys, values, 0.5) == "torch"
        with pytest.raises(ValueError, match=f"{impl!r} here: it takes queries, keys and values of one shape"):
            causal_attention(q, keys, values, 0.5, impl=impl)


def test_what_is_chosen_and_what_cannot_be():
    inputs = heads(1, 2, 9, 3)
    assert causal_attention.choose(*inputs, 0.0) == "torch"
    assert causal_attention.choose(*inputs, 0.1) == "fused"
    assert causal_attention.choose(*inputs, 0.0, impl="fused") == "fused"
    assert causal_attention.choose(*inputs, 0.999) == "torch"
    with pytest.raises(ValueError, match="impl: causal_attention cannot be 'fused' here: its masks are made of bytes"):
        causal_attention(*inputs, 0.999, impl="fused")


def test_transforms_get_the_plain_version():
    q, k, v = heads(1, 2, 5, 3)
    chosen = []

    def run(q):
        chosen.append(causal_attention.choose(q, k, v, 0.5))
        return causal_attention(q, k, v, 0.0)

    torch.testing.assert_close(torch.func.jacrev(run)(q.detach()), torch.autograd.functional.jacobian(run, q))
    assert chosen == ["torch", "fused"]


def test_what_is_kept_grows_with_the_length_and_holds_no_weights():
    H, K = 2, 4

    def bytes_kept(T: int) -> int:
        pieces = {}

        def pack(x):
            pieces[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with saved_tensors_hooks(pack, lambda x: x):
            y = causal_attention(*heads(1, H, T, K, torch.float32), 0.1)
        assert y.requires_grad  # and so what it saved is alive, and no two pieces had the same place
        return sum(pieces.values())

    assert bytes_kept(256) - bytes_kept(128) == 128 * H * 4 * (4 * K + 1)  # q, k, v, the output, a logarithm
