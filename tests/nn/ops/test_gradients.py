"""Implementations with their own backward pass: the derivatives that they refuse, autocast, memory layout."""

import pytest
import torch
from comparison import COMPILED, assert_near, leaves, outputs_and_gradients, second_gradients
from operands import EACH, OPERATIONS, case, local_rnn_inputs, precision
from torch.func import vmap

from rtx.nn.ops.attention import causal_attention
from rtx.nn.ops.local_rnn import local_rnn
from rtx.nn.ops.local_rnn import native as native_local_rnn
from rtx.nn.ops.pooling import pooling

WAYS = {
    "second": lambda y, inputs: torch.autograd.grad(y.sum(), inputs, create_graph=True),
    "batched": lambda y, inputs: torch.autograd.grad(y, inputs, torch.ones(4, *y.shape), is_grads_batched=True),
    "mapped": lambda y, inputs: vmap(lambda one: torch.autograd.grad(y, inputs, one))(torch.ones(4, *y.shape)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@EACH
def test_derivatives_that_an_implementation_lacks_are_refused(name, impl, way):
    one = case(name)
    with pytest.raises(RuntimeError, match=rf'^{name}: .*implementation\("torch"\)'):
        way(one.run(*one.inputs, impl=impl), one.inputs)
    way(one.run(*one.inputs, impl="torch"), one.inputs)


@pytest.mark.parametrize("name", OPERATIONS)
def test_second_derivatives_of_the_torch_version_equal_the_reference(name):
    one = case(name, torch.float64)
    found = second_gradients(one.run(*one.inputs, impl="torch"), one.inputs)
    assert_near(found, second_gradients(one.reference(*one.inputs), one.inputs), 1e-10)


@EACH
def test_gradients_are_the_same_the_second_time_and_inside_autocast(name, impl):
    one = case(name)
    y = one.run(*one.inputs, impl=impl).sum()
    once, again = (torch.autograd.grad(y, one.inputs, retain_graph=True) for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(y, one.inputs)
    assert all(map(torch.equal, once, again)) and all(map(torch.equal, once, inside))


@EACH
def test_only_the_requested_gradients_are_computed(name, impl):
    one = case(name)
    constants = [x.detach() for x in one.inputs]
    for i, x in enumerate(one.inputs):
        y = one.run(*constants[:i], x, *constants[i + 1 :], impl=impl)
        (found,) = torch.autograd.grad(y.sum(), x)
        (expected,) = torch.autograd.grad(one.run(*one.inputs, impl=impl).sum(), x)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        y = one.run(*one.inputs, impl=impl)
    assert not y.requires_grad
    torch.testing.assert_close(y, one.run(*one.inputs, impl=impl).detach(), rtol=1e-6, atol=1e-6)


def with_other_strides(x: torch.Tensor) -> torch.Tensor:
    """Return the same numbers with another order of axes in memory, and a gap after each number."""
    axes = tuple(reversed(range(x.ndim)))
    reordered = x.permute(axes).contiguous()
    return torch.stack([reordered, torch.full_like(reordered, torch.nan)], -1)[..., 0].permute(axes)


@EACH
def test_inputs_may_have_any_strides(name, impl):
    dtype, tolerance = precision(impl)
    one = case(name, dtype)
    exact = leaves(one.inputs, torch.float64)
    strided = [with_other_strides(x.detach()).requires_grad_() for x in one.inputs]
    assert not any(x.is_contiguous() for x in strided if x.numel() > 1)
    found, expected = one.run(*strided, impl=impl), one.reference(*exact)
    assert_near(outputs_and_gradients(found, strided), outputs_and_gradients(expected, exact), tolerance)


@EACH
def test_a_default_device_changes_nothing(name, impl):
    one = case(name)

    def run() -> torch.Tensor:
        torch.manual_seed(1)
        arguments = one.arguments(*one.inputs)
        return one.operation(*arguments[:-1], 0.3 if name == "causal_attention" else arguments[-1], impl=impl)

    with torch.device("meta"):
        there = outputs_and_gradients(run(), one.inputs)
    assert all(map(torch.equal, there, outputs_and_gradients(run(), one.inputs)))


@COMPILED
def test_threads_share_the_work_and_change_no_bit(monkeypatch):
    monkeypatch.setattr(native_local_rnn, "PARALLEL_FROM", 1)
    torch.manual_seed(0)
    q = torch.randn(3, 5, 50, 16).requires_grad_()
    sequences = local_rnn_inputs("gru", 4, 600, 32)
    features, weight = torch.randn(7, 300, 2), torch.randn(33, 2).requires_grad_()
    lengths = torch.arange(1, 8) * 40

    def run() -> list[torch.Tensor]:
        torch.manual_seed(1)
        context = pooling(features, lengths, weight, weight[:, 0], None, None, "coded", impl="native")
        return [
            *outputs_and_gradients(causal_attention(q, q, q, 0.1, impl="native"), [q]),
            *outputs_and_gradients(local_rnn(*sequences, 3, "gru", impl="native"), sequences),
            *outputs_and_gradients(context, [weight]),
        ]

    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(run())
    finally:
        torch.set_num_threads(before)
    by_torch = {4, 5}  # gradients of the weight matrices: torch may split the sum over all steps among threads
    for place, (one, many) in enumerate(zip(*found, strict=True)):
        if place in by_torch:
            assert_near([many], [one], 1e-5)
        else:
            assert torch.equal(many, one), place


@pytest.mark.parametrize("name", OPERATIONS)
def test_autocast_computes_in_bfloat16_and_gradients_stay_float32(name):
    one = case(name)
    exact = outputs_and_gradients(one.run(*one.inputs), one.inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = outputs_and_gradients(one.run(*one.inputs), one.inputs)
    assert {gradient.dtype for gradient in found[1:]} == {torch.float32}
    for half, full in zip(found, exact, strict=True):
        assert 0 < (half.float() - full).abs().max() < 0.05 * full.abs().max()
