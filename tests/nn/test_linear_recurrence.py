"""The scan against a loop, RG-LRU against its equations, and the size its memory starts with."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from rtx.nn import naive_scan
from rtx.nn.linear_recurrence import RGLRU, BlockDiagonal, linear_scan


@settings(max_examples=60)
@given(T=st.integers(1, 33), started=st.booleans(), seed=st.integers(0, 999))
def test_scan_equals_the_loop_with_all_gradients(T, started, seed):
    generator = torch.Generator().manual_seed(seed)
    a, b, weight = torch.randn(3, 2, T, 3, dtype=torch.float64, generator=generator)  # also decays above 1, and below 0
    start = torch.randn(2, 3, dtype=torch.float64, generator=generator) if started else None
    gradients = []
    results = []
    for scan in (linear_scan, naive_scan.linear_scan):
        inputs = [v.clone().requires_grad_() for v in (a, b, start) if v is not None]
        h = scan(*inputs)
        (h * weight).sum().backward()
        results.append(h)
        gradients.append([v.grad if v.grad is not None else torch.zeros_like(v) for v in inputs])  # a_1 times zero
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("decay", [0.0, 1.0, 1e-30])
def test_scan_is_exact_for_decays_that_forget_all_or_nothing(decay):
    b = torch.arange(1.0, 12).double()[None, :, None]
    a = torch.full_like(b, decay)
    expected = b.cumsum(1) if decay == 1 else b
    torch.testing.assert_close(linear_scan(a, b), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("T", "passes"), [(1, 0), (2, 1), (8, 3), (9, 4), (1024, 10)])
def test_scan_makes_as_many_passes_as_the_length_has_doublings(T, passes):
    class Count(TorchDispatchMode):
        joins = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.joins += func is torch.ops.aten.cat.default
            return func(*args, **(kwargs or {}))

    with Count() as count:
        linear_scan(torch.rand(1, T, 2), torch.rand(1, T, 2))
    assert count.joins == 2 * passes == 2 * math.ceil(math.log2(T))


def layer(D: int = 6, heads: int = 3, seed: int = 0) -> RGLRU:
    torch.manual_seed(seed)
    made = RGLRU(D, heads).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


@pytest.mark.parametrize("heads", [1, 3, 6])
def test_rg_lru_equals_its_equations_with_all_gradients(heads):
    ours, x = layer(heads=heads), torch.randn(2, 7, 6, dtype=torch.float64)
    gates = (ours.recurrence_gate, ours.input_gate)
    named = [ours.decay, *(p for gate in gates for p in (gate.weight, gate.bias))]
    twin = [p.detach().clone().requires_grad_() for p in named]
    x_ours, x_twin = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = ours(x_ours), torch.stack([naive_scan.rg_lru(row, *twin) for row in x_twin])
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(y)
    (y * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x_ours.grad, x_twin.grad, rtol=0, atol=1e-10)
    for mine, other in zip(named, twin, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=1e-10)


def test_rg_lru_streams():
    model, x, state = layer(), torch.randn(2, 33, 6, dtype=torch.float64), None
    rows = []
    for x_t in x.unbind(1):
        y, state = model.step(x_t, state)
        rows.append(y)
    torch.testing.assert_close(torch.stack(rows, 1), model(x), rtol=0, atol=1e-10)


def test_decays_start_where_the_paper_puts_them():
    torch.manual_seed(0)
    fastest = torch.sigmoid(RGLRU(4000).double().decay) ** 8  # a^c, all of it when the gate is open
    assert 0.9 - 1e-6 <= fastest.min() < 0.901 and 0.998 < fastest.max() <= 0.999 + 1e-6
    share_below = (fastest < 0.9495).double().mean().item()
    assert share_below == pytest.approx(0.5, abs=0.03)  # uniform


def test_gates_start_with_lecuns_variance_within_a_head_and_no_bias():
    torch.manual_seed(0)
    gate = BlockDiagonal(256, 4)
    assert gate.weight.shape == (4, 64, 64) and not gate.bias.any()
    assert gate.weight.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_a_gate_reads_its_own_head_alone():
    gate = BlockDiagonal(6, 3)
    jacobian = torch.autograd.functional.jacobian(gate, torch.randn(6))
    assert torch.equal(jacobian != 0, torch.block_diag(*[torch.ones(2, 2)] * 3).bool())


def test_a_closed_gate_keeps_the_state_and_lets_nothing_in_and_gradients_stay_finite():
    model = layer()
    torch.nn.init.zeros_(model.recurrence_gate.weight)
    torch.nn.init.constant_(model.recurrence_gate.bias, -1000)  # r = 0, a = 1 exactly
    state = (torch.randn(2, 6, dtype=torch.float64),)
    y, _ = model.step(torch.randn(2, 6, dtype=torch.float64), state)
    torch.testing.assert_close(y, state[0], rtol=0, atol=1e-10)
    x = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    model(x).sum().backward()
    assert all(p.grad.isfinite().all() for p in [x, *model.parameters()])


def test_in_half_precision_the_state_keeps_float32():
    """In bfloat16 a decay of .999 is 1, and a long memory would never fade."""
    torch.manual_seed(0)
    model = RGLRU(64).to(torch.bfloat16)
    y, (h,) = model.step(torch.randn(2, 64, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16 and h.dtype == torch.float32
    kept = model.inside(torch.randn(1, 3, 64, dtype=torch.bfloat16))["kept"]
    assert (kept.max() < 1) and (kept.to(torch.bfloat16) == 1).any()


def test_inside_are_the_terms_of_the_recurrence():
    model, x = layer(), torch.randn(2, 9, 6, dtype=torch.float64)
    inside = model.inside(x)
    assert torch.equal(inside["states"], model(x))
    torch.testing.assert_close(naive_scan.linear_scan(inside["kept"], inside["added"]), model(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RGLRU(0), "d_model: expected a whole number of at least 1, got 0"),
        (lambda: RGLRU(6, 4), "heads: expected a divisor of d_model = 6, got 4"),
        (lambda: layer()(torch.randn(2, 9, 6)), "x: is torch.float32, but the model is torch.float64"),
        (lambda: layer().inside(torch.randn(9, 6).double()), r"x: expected shape \(batch, time, 6\), got \(9, 6\)"),
        (lambda: layer().step(torch.randn(2, 9, 6)), "x: expected one step of at least one stream"),
        (
            lambda: layer().step(torch.randn(2, 6).double(), (torch.zeros(3, 6),)),
            r"state: expected tensors of shapes \(2, 6\) .*, got \(3, 6\)",
        ),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
