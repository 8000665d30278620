"""LocalRNN's implementations against the reference loops, and how much memory they need."""

import pytest
import torch
from comparison import COMPILED, NATIVE, assert_near, leaves, outputs_and_gradients, stored_bytes
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from operands import CELLS, local_rnn_inputs, precision

from rtx.nn.ops.local_rnn import local_rnn, native

FAST = ("gru", "lstm")  # native code is written for these


@pytest.mark.parametrize("impl", [NATIVE, "torch"])
@settings(max_examples=40)
@given(
    stored=st.booleans(),
    group=st.sampled_from([1, 30, 2**17]),
    cell=st.sampled_from(CELLS),
    B=st.integers(1, 3),
    T=st.sampled_from([1, 2, 3, 7, 15, 16, 17, 33]),
    D=st.integers(1, 9),
    window=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_outputs_and_gradients_equal_the_reference(impl, stored, group, cell, B, T, D, window, seed):
    """Native code works on groups of sequences, and stores the gates or computes them again."""
    assume(impl == "torch" or cell in FAST)
    torch.manual_seed(seed)
    dtype, tolerance = precision(impl)
    inputs = local_rnn_inputs(cell, B, T, D, dtype)
    exact = leaves(inputs, torch.float64)
    expected = outputs_and_gradients(local_rnn(*exact, window, cell, impl="reference"), exact)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "STORE_FROM", D + (not stored))
        patch.setattr(native, "GROUP", group)
        found = outputs_and_gradients(local_rnn(*inputs, window, cell, impl=impl), inputs)
    assert {one.dtype for one in found} == {dtype}
    assert_near(found, expected, tolerance)


@COMPILED
@pytest.mark.parametrize("cell", FAST)
def test_native_is_exact_where_gates_are_saturated(cell):
    torch.manual_seed(0)
    x, w_ih, w_hh, *biases = (one.detach() for one in local_rnn_inputs(cell, 1, 20, 3))
    inputs = [60 * x, 60 * w_ih, 60 * w_hh, *biases]
    exact = [one.double() for one in inputs]
    found = local_rnn(*inputs, 3, cell, impl="native")
    assert_near([found], [local_rnn(*exact, 3, cell, impl="reference")], 1e-5)


@pytest.mark.parametrize(
    ("cell", "impl"),
    [(cell, "torch") for cell in CELLS] + [pytest.param(cell, "native", marks=COMPILED) for cell in FAST],
)
def test_a_nan_is_in_the_output_of_every_window_that_contains_it(cell, impl):
    inputs = [one.detach() for one in local_rnn_inputs(cell, 2, 40, 8)]
    inputs[0][1, 20, 3] = torch.nan
    found = local_rnn(*inputs, 3, cell, impl=impl).isnan().any(-1)
    assert found.nonzero().tolist() == [[1, 20], [1, 21], [1, 22]]


@COMPILED
@pytest.mark.parametrize(("cell", "arrays"), [("gru", 5), ("lstm", 7)])
def test_native_stores_its_input_alone_or_the_gates_and_states_but_no_windows(monkeypatch, cell, arrays):
    D, M, T = 4, 5, 64

    def growth() -> int:
        """Return how many bytes another T positions need."""
        sizes = [
            stored_bytes(lambda n=n: local_rnn(*local_rnn_inputs(cell, 1, n, D), M, cell, impl="native"))
            for n in (T, 2 * T)
        ]
        return sizes[1] - sizes[0]

    assert growth() == 4 * T * D
    monkeypatch.setattr(native, "STORE_FROM", D)
    assert growth() == 4 * T * D * (1 + M * arrays)
