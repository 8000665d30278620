"""The scan against a loop, RG-LRU against its equations, and its initial weights."""

import pytest
import torch
from comparison import assert_near, outputs_and_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx.nn import reference
from rtx.nn.linear_recurrence import RGLRU, BlockDiagonal, linear_scan


@settings(max_examples=60)
@given(T=st.integers(1, 33), seed=st.integers(0, 999))
def test_the_scan_equals_the_loop_with_all_gradients(T, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = list(torch.randn(2, 2, T, 3, dtype=torch.float64, generator=generator).unbind())  # also |decay| above 1
    inputs = [one.clone().requires_grad_() for one in inputs]
    found, expected = (outputs_and_gradients(scan(*inputs), inputs) for scan in (linear_scan, reference.linear_scan))
    assert_near(found, expected, 1e-10)


@pytest.mark.parametrize("decay", [0.0, 1.0, 1e-30])
def test_the_scan_is_exact_for_extreme_decays(decay):
    b = torch.arange(1.0, 12).double()[None, :, None]
    expected = b.cumsum(1) if decay == 1 else b
    torch.testing.assert_close(linear_scan(torch.full_like(b, decay), b), expected, rtol=1e-12, atol=0)


def layer(D: int = 6, heads: int = 3, seed: int = 0) -> RGLRU:
    torch.manual_seed(seed)
    made = RGLRU(D, heads).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def test_decays_start_uniform_in_the_papers_range():
    torch.manual_seed(0)
    fastest = torch.sigmoid(RGLRU(4000, 1000).double().decay) ** 8  # a^c: the decay while the gate is open
    assert 0.9 - 1e-6 <= fastest.min() < 0.901 and 0.998 < fastest.max() <= 0.999 + 1e-6
    assert (fastest < 0.9495).double().mean().item() == pytest.approx(0.5, abs=0.03)


def test_gates_start_with_variance_1_over_fan_in_and_without_bias():
    torch.manual_seed(0)
    gate = BlockDiagonal(256, 4)
    assert gate.weight.shape == (4, 64, 64) and not gate.bias.any()
    assert gate.weight.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_a_closed_gate_keeps_the_state_and_gradients_stay_finite():
    model = layer()
    torch.nn.init.zeros_(model.recurrence_gate.weight)
    torch.nn.init.constant_(model.recurrence_gate.bias, -1000)  # r = 0, so a = 1
    state = (torch.randn(2, 6, dtype=torch.float64),)
    y, _ = model.read(torch.randn(2, 1, 6, dtype=torch.float64), state)
    torch.testing.assert_close(y[:, 0], state[0], rtol=0, atol=1e-10)
    x = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    model(x).sum().backward()
    assert all(p.grad.isfinite().all() for p in [x, *model.parameters()])


def test_the_state_is_float32_in_half_precision():
    """In bfloat16 a decay of .999 would be 1, and the state would never decay."""
    torch.manual_seed(0)
    model = RGLRU(64).to(torch.bfloat16)
    y, (h,) = model.read(torch.randn(2, 1, 64, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16 and h.dtype == torch.float32
    kept = model.introspect(torch.randn(1, 3, 64, dtype=torch.bfloat16))["kept"]
    assert kept.max() < 1 and (kept.to(torch.bfloat16) == 1).any()


def test_a_sequence_without_a_batch_is_refused():
    for method in (layer(), layer().introspect):
        with pytest.raises(ValueError, match=r"\(5, 6\)"):
            method(torch.randn(5, 6, dtype=torch.float64))


def test_introspect_returns_the_terms_of_the_recurrence():
    model, x = layer(), torch.randn(2, 9, 6, dtype=torch.float64)
    found = model.introspect(x)
    assert torch.equal(found["states"], model(x))
    expected = reference.linear_scan(found["kept"], found["added"])
    torch.testing.assert_close(expected, model(x), rtol=0, atol=1e-10)
