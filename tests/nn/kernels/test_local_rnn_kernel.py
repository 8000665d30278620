"""LocalRNN's kernels against the loops, against each other, and what they keep for the backward pass."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd.graph import saved_tensors_hooks

from rtx.nn.kernels import local_rnn as kernel
from rtx.nn.kernels.local_rnn import local_rnn

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
CELLS = sorted(GATES)


def arguments(cell: str, B: int, T: int, D: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """x, w_ih, w_hh, b_ih, b_hh."""
    G = GATES[cell] * D
    shapes = [(B, T, D), (G, D), (G, D), (G,), (G,)]
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def outputs_and_gradients(impl: str, inputs: list[torch.Tensor], window: int, cell: str) -> list[torch.Tensor]:
    y = local_rnn(*inputs, window, cell, impl=impl)
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    gradients = torch.autograd.grad((y * weight).sum(), inputs, allow_unused=True)  # M = 1: no recurrence
    return [y, *(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True))]


@settings(max_examples=60)
@given(
    wide=st.booleans(),
    cell=st.sampled_from(CELLS),
    B=st.integers(1, 3),
    T=st.integers(1, 7),
    D=st.integers(1, 5),
    window=st.integers(1, 9),
    seed=st.integers(0, 999),
)
def test_fused_equals_the_loops_with_all_gradients_kept_or_computed_again(wide, cell, B, T, D, window, seed):
    torch.manual_seed(seed)
    inputs = arguments(cell, B, T, D)
    expected = outputs_and_gradients("naive", inputs, window, cell)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "WIDE", D + (not wide))
        found = outputs_and_gradients("fused", inputs, window, cell)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
def test_a_few_sequences_at_a_time_are_all_of_them(monkeypatch, cell):
    torch.manual_seed(0)
    inputs = arguments(cell, B=5, T=6, D=4)
    expected = outputs_and_gradients("torch", inputs, 3, cell)
    monkeypatch.setattr(kernel, "STATES", 2 * 6 * 4)
    for found, wanted in zip(outputs_and_gradients("fused", inputs, 3, cell), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_twice_over_and_of_a_strided_input(cell):
    torch.manual_seed(0)
    x, *weights = arguments(cell, B=4, T=2, D=3)

    def run(x, *weights):
        return local_rnn(x.transpose(0, 1), *weights, 3, cell, impl="fused")

    assert torch.autograd.gradcheck(run, (x, *weights))
    assert torch.autograd.gradgradcheck(run, (x, *weights))


def test_gradients_twice_over_where_one_input_is_made_from_another():
    torch.manual_seed(0)
    x, *weights = arguments("gru", B=1, T=3, D=2)

    def run(x, *weights):
        once = local_rnn(x, *weights, 2, "gru", impl="fused")
        return local_rnn(once, *weights, 2, "gru", impl="fused")

    assert torch.autograd.gradgradcheck(run, (x, *weights))


@pytest.mark.parametrize("cell", CELLS)
def test_only_the_gradients_that_are_asked_for(cell):
    torch.manual_seed(0)
    x, *weights = [tensor.detach() for tensor in arguments(cell, B=2, T=5, D=3)]
    weights[1].requires_grad_()
    (found,), (expected,) = (
        torch.autograd.grad(local_rnn(x, *weights, 3, cell, impl=impl).sum(), weights[1]) for impl in ("fused", "torch")
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    with torch.no_grad():
        y = local_rnn(x, *weights, 3, cell, impl="fused")
    assert not y.requires_grad
    torch.testing.assert_close(y, local_rnn(x, *weights, 3, cell, impl="torch"), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_the_same_backward_pass_may_run_again(cell):
    torch.manual_seed(0)
    inputs = arguments(cell, B=2, T=5, D=3)
    y = local_rnn(*inputs, 3, cell, impl="fused").sum()
    once, again = (torch.autograd.grad(y, inputs, retain_graph=True) for _ in range(2))
    assert all(map(torch.equal, once, again))


@pytest.mark.parametrize("cell", CELLS)
def test_autocast_computes_in_half_and_learns_in_float32(cell):
    torch.manual_seed(0)
    inputs = arguments(cell, B=2, T=9, D=8, dtype=torch.float32)
    exact = outputs_and_gradients("fused", inputs, 4, cell)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = outputs_and_gradients("fused", inputs, 4, cell)
    assert found[0].dtype == torch.bfloat16
    for half, full in zip(found, exact, strict=True):
        assert (half.float() - full).abs().max() < 0.05 * full.abs().max()
    assert {gradient.dtype for gradient in found[1:]} == {torch.float32}


def test_transforms_and_compilers_get_the_plain_version():
    x, *weights = arguments("gru", B=2, T=4, D=3)
    assert local_rnn.choose(x, *weights, 3, "gru") == "fused"
    chosen = []

    def run(x):
        chosen.append(local_rnn.choose(x, *weights, 3, "gru"))
        return local_rnn(x, *weights, 3, "gru")

    jacobian = torch.func.jacrev(run)(x.detach())
    torch.testing.assert_close(jacobian, torch.autograd.functional.jacobian(run, x), rtol=0, atol=1e-12)
    torch.func.jvp(run, (x.detach(),), (x.detach(),))
    assert chosen == ["torch", "fused", "torch"]


def bytes_kept(cell: str, T: int, window: int, D: int = 4) -> int:
    """Of what autograd saves, each piece of memory once."""
    pieces = {}

    def pack(x):
        pieces[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with saved_tensors_hooks(pack, lambda x: x):
        y = local_rnn(*arguments(cell, 1, T, D, torch.float32), window, cell, impl="fused")
    assert y.requires_grad  # and so what it saved is alive, and no two pieces had the same place
    return sum(pieces.values())


@pytest.mark.parametrize(("cell", "arrays"), [("rnn", 1), ("gru", 5), ("lstm", 7)])
def test_what_is_kept_grows_with_the_length_and_holds_no_windows(monkeypatch, cell, arrays):
    D, M, T = 4, 5, 64
    narrow = bytes_kept(cell, 2 * T, M, D) - bytes_kept(cell, T, M, D)
    monkeypatch.setattr(kernel, "WIDE", D)
    wide = bytes_kept(cell, 2 * T, M, D) - bytes_kept(cell, T, M, D)
    assert narrow == 4 * T * D  # x
    assert wide == 4 * T * D * (1 + M * arrays)  # and of each of M steps the gates and the state
