"""The kernels between two products of a wide LocalRNN, step by step on the CPU, against the loops."""

import numpy as np
import pytest
import torch
from test_triton_local_rnn import CELLS, SIZES, arguments, computed

from rtx.nn.kernels import local_rnn as local_rnn_file
from rtx.nn.kernels.local_rnn import local_rnn
from rtx.nn.kernels.triton import obstacles
from rtx.nn.kernels.triton.plan import GATES, KEPT

STEPS = "triton-steps"


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("B", "T", "D", "window"), [*SIZES[:5], (2, 3, 200, 3), (1, 1030, 2, 2)])
def test_equals_the_loops_with_all_gradients(interpreted, cell, B, T, D, window):
    found = interpreted(computed, STEPS, cell, B, T, D, window, torch.float32)
    expected = computed("naive", cell, B, T, D, window, torch.float64)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("cell", CELLS)
def test_half_precision_is_near(interpreted, cell):
    found = interpreted(computed, STEPS, cell, 2, 20, 70, 5, torch.bfloat16)
    expected = computed("naive", cell, 2, 20, 70, 5, torch.float64)
    for one, wanted in zip(found, expected, strict=True):
        # the interpreter cuts digits off where a GPU rounds: always towards zero, which sums do not even out
        assert 0 < np.linalg.norm(one - wanted) < 0.03 * np.linalg.norm(wanted)


def computed_again(D: int, wide: int) -> list[np.ndarray]:
    before, local_rnn_file.WIDE = local_rnn_file.WIDE, wide
    try:
        return computed(STEPS, "lstm", 2, 7, D, 4, torch.float32)
    finally:
        local_rnn_file.WIDE = before


def test_gates_that_were_kept_are_those_that_are_computed_again(interpreted):
    for one, wanted in zip(interpreted(computed_again, 6, 6), interpreted(computed_again, 6, 7), strict=True):
        np.testing.assert_array_equal(one, wanted)


def second_order(impl: str, cell: str) -> list[np.ndarray]:
    inputs = arguments(cell, 2, 4, 3, torch.float32)
    first = torch.autograd.grad(local_rnn(*inputs, 3, cell, impl=impl).cos().sum(), inputs, create_graph=True)
    return [one.numpy() for one in torch.autograd.grad(sum(one.sin().sum() for one in first), inputs)]


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_have_gradients(interpreted, cell):
    for one, wanted in zip(interpreted(second_order, STEPS, cell), second_order("torch", cell), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def run_twice(cell: str) -> list[list[np.ndarray]]:
    inputs = arguments(cell, 4, 5, 6, torch.float32)
    y = local_rnn(*inputs, 3, cell, impl=STEPS)
    return [[one.numpy() for one in torch.autograd.grad(y.sum(), inputs, retain_graph=True)] for _ in range(2)]


@pytest.mark.parametrize("cell", CELLS)
def test_what_was_kept_is_still_there_for_a_second_way_back(interpreted, cell):
    once, again = interpreted(run_twice, cell)
    assert all(map(np.array_equal, once, again))


def under_autocast() -> tuple[torch.dtype, torch.dtype]:
    inputs = arguments("gru", 2, 5, 70, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = local_rnn(*inputs, 3, "gru", impl=STEPS)
    return y.dtype, torch.autograd.grad(y.float().sum(), inputs)[0].dtype


def test_autocast_computes_in_half_precision(interpreted):
    assert interpreted(under_autocast) == (torch.bfloat16, torch.float32)


# What stands in the way


def reasons(dtype: torch.dtype) -> tuple[str, str | None]:
    inputs = arguments("lstm", 1, 2, 200, dtype)
    return local_rnn.choose(*inputs, 3, "lstm"), local_rnn.kernels[STEPS].obstacle(*inputs, 3, "lstm")


def test_any_width_is_taken_and_other_dtypes_are_refused(interpreted):
    chosen, obstacle = interpreted(reasons, torch.float32)
    assert chosen not in (STEPS, "triton") and obstacle is None  # the interpreter is for tests
    assert "written for float32 and bfloat16, and x is torch.float64" in interpreted(reasons, torch.float64)[1]


def test_without_a_gpu_they_are_refused_with_the_reason():
    inputs = arguments("gru", 1, 2, 3, torch.float32)
    with pytest.raises(ValueError, match="cannot be 'triton-steps' here: it is made for CUDA devices, and x is on cpu"):
        local_rnn(*inputs, 3, "gru", impl=STEPS)


def test_it_is_second_choice_to_the_kernel_that_keeps_the_state_on_the_chip():
    assert list(local_rnn.kernels)[:2] == ["triton", STEPS]
    assert obstacles.no_room(512, "gru", torch.bfloat16, 227 << 10) is not None


# The compiler, which needs no GPU


def built(kernel: str, cell: str, dtype: str) -> tuple[int, str]:
    """Bytes of shared memory, and the assembly of a device of compute capability 9.0."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from rtx.nn.kernels.triton import steps

    function = {"forward": steps.forward_kernel, "backward": steps.backward_kernel}[kernel]
    constants = {"CELL": cell, "GATES": GATES[cell], "BLOCK": steps.BLOCK}
    names = function.arg_names
    types = dict.fromkeys(("N", "B", "T", "stride"), "i32")
    signature = {name: "constexpr" if name in constants else types.get(name, f"*{dtype}") for name in names}
    done = compiled(ASTSource(function, signature, constants), GPUTarget("cuda", 90, 32), {"num_warps": 4})
    return done.metadata.shared, done.asm["ptx"]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "cell", "dtype"), [
    ("forward", "rnn", "fp32"), ("forward", "gru", "bf16"), ("forward", "lstm", "fp32"),
    ("backward", "rnn", "bf16"), ("backward", "gru", "fp32"), ("backward", "lstm", "bf16"),
])  # fmt: skip
def test_kernels_compile_for_a_gpu_and_need_no_shared_memory(compiling, kernel, cell, dtype):
    shared, assembly = compiling(built, kernel, cell, dtype)
    assert shared == 0
    assert ".target sm_90" in assembly
    # of each gate one array is read and one written; what is added to is read, too
    assert KEPT[cell] <= assembly.count("ld.global") and GATES[cell] <= assembly.count("st.global")
