"""LocalRNN's Triton kernels, step by step on the CPU, against the loops; and what stands in their way."""

import numpy as np
import pytest
import torch

from rtx.nn.kernels.local_rnn import local_rnn
from rtx.nn.kernels.triton import obstacles
from rtx.nn.kernels.triton.plan import GATES, KEPT, plan, shared_bytes

CELLS = sorted(GATES)
SIZES = [(1, 1, 1, 1), (2, 7, 5, 3), (1, 40, 33, 4), (2, 5, 7, 9), (3, 11, 16, 2), (1, 18, 130, 2), (2, 3, 160, 3)]
"""B, T, D and the window: one number of everything, padding wider than the sequence, tiles that end in mid-sequence."""


def arguments(cell: str, B: int, T: int, D: int, dtype: torch.dtype, device: str = "cpu") -> list[torch.Tensor]:
    """x, w_ih, w_hh, b_ih, b_hh: leaves; of every dtype the same numbers, but for their rounding."""
    draws, G = torch.Generator().manual_seed(B + T + D), GATES[cell] * D
    shapes = [(B, T, D), (G, D), (G, D), (G,), (G,)]
    scales = [1.0, D**-0.5, D**-0.5, 1.0, 1.0]
    found = [torch.randn(s, generator=draws) * scale for s, scale in zip(shapes, scales, strict=True)]
    return [one.to(torch.bfloat16).to(device, dtype).requires_grad_() for one in found]


def outputs_and_gradients(impl: str, inputs: list[torch.Tensor], window: int, cell: str) -> list[torch.Tensor]:
    y = local_rnn(*inputs, window, cell, impl=impl)
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype, device=y.device).view_as(y)
    gradients = torch.autograd.grad((y * weight).sum(), inputs, allow_unused=True)  # M = 1: no recurrence
    found = [y, *(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True))]
    return [one.detach().double().cpu() for one in found]


def computed(impl: str, cell: str, B: int, T: int, D: int, window: int, dtype: torch.dtype) -> list[np.ndarray]:
    found = outputs_and_gradients(impl, arguments(cell, B, T, D, dtype), window, cell)
    return [one.numpy() for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("B", "T", "D", "window"), SIZES)
def test_equals_the_loops_with_all_gradients(interpreted, cell, B, T, D, window):
    found = interpreted(computed, "triton", cell, B, T, D, window, torch.float32)
    expected = computed("naive", cell, B, T, D, window, torch.float64)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_half_precision_is_near(interpreted, cell):
    found = interpreted(computed, "triton", cell, 2, 20, 24, 5, torch.bfloat16)
    expected = computed("naive", cell, 2, 20, 24, 5, torch.float64)
    for one, wanted in zip(found, expected, strict=True):
        # the interpreter cuts digits off where a GPU rounds, so the error is twice as large
        assert 0 < np.linalg.norm(one - wanted) < 0.02 * np.linalg.norm(wanted)


def in_parts(numbers: int) -> list[np.ndarray]:
    from rtx.nn.kernels.triton import local_rnn as kernels

    before, kernels.SCRATCH = kernels.SCRATCH, numbers
    try:
        return computed("triton", "gru", 3, 5, 4, 2, torch.float32)
    finally:
        kernels.SCRATCH = before


def test_a_few_sequences_at_a_time_are_all_of_them(interpreted):
    for one, wanted in zip(interpreted(in_parts, 2 * 5 * 4 * 2 * 5), interpreted(in_parts, 10**6), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


def second_order(impl: str) -> list[np.ndarray]:
    inputs = arguments("lstm", 2, 4, 3, torch.float32)
    first = torch.autograd.grad(local_rnn(*inputs, 3, "lstm", impl=impl).cos().sum(), inputs, create_graph=True)
    return [one.numpy() for one in torch.autograd.grad(sum(one.sin().sum() for one in first), inputs)]


def test_gradients_have_gradients(interpreted):
    for one, wanted in zip(interpreted(second_order, "triton"), second_order("torch"), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def strided_and_partly_frozen(impl: str) -> list[np.ndarray]:
    x, *weights = (one.detach() for one in arguments("gru", 4, 5, 6, torch.float32))
    weights[1].requires_grad_()
    y = local_rnn(x.transpose(0, 1), *weights, 3, "gru", impl=impl)
    once, again = (torch.autograd.grad(y.sum(), weights[1], retain_graph=True) for _ in range(2))
    with torch.no_grad():
        free = local_rnn(x.transpose(0, 1), *weights, 3, "gru", impl=impl)
    assert torch.equal(*once, *again) and torch.equal(free, y) and not free.requires_grad
    return [y.detach().numpy(), once[0].numpy()]


def test_strides_and_weights_that_do_not_learn(interpreted):
    for one, wanted in zip(
        interpreted(strided_and_partly_frozen, "triton"), strided_and_partly_frozen("torch"), strict=True
    ):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


def kept_for_backward(T: int) -> int:
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: (sizes.append(one.numel()), one)[1], lambda one: one):
        local_rnn(*arguments("gru", 1, T, 4, torch.float32), 5, "gru", impl="triton")
    return sum(sizes)


def test_the_forward_pass_keeps_its_input_alone(interpreted):
    assert interpreted(kept_for_backward, 20) - interpreted(kept_for_backward, 10) == 10 * 4


# What stands in the way


def reasons(dtype: torch.dtype, D: int) -> tuple[str, str | None]:
    inputs = arguments("lstm", 1, 2, D, dtype)
    return local_rnn.choose(*inputs, 3, "lstm"), local_rnn.kernels["triton"].obstacle(*inputs, 3, "lstm")


def test_the_interpreter_is_used_only_when_asked_for(interpreted):
    chosen, obstacle = interpreted(reasons, torch.float32, 8)
    assert chosen != "triton" and obstacle is None


def test_what_is_too_wide_or_of_another_dtype_is_refused(interpreted):
    assert (
        interpreted(reasons, torch.float32, 161)[1]
        == "it keeps the state on the chip up to d_model = 160, and this is 161"
    )
    assert "written for float32 and bfloat16, and x is torch.float64" in interpreted(reasons, torch.float64, 8)[1]


def test_weights_that_the_chip_cannot_hold_are_refused():
    said = obstacles.no_room(128, "lstm", torch.float32, 227 << 10)
    assert said.startswith("its weights need 592 KiB of shared memory, and this device has 227; under torch.autocast")


def test_without_a_gpu_the_other_implementations_run():
    inputs = arguments("gru", 1, 2, 3, torch.float32)
    assert local_rnn.choose(*inputs, 3, "gru") != "triton"
    with pytest.raises(ValueError, match="cannot be 'triton' here: it is made for CUDA devices, and x is on cpu"):
        local_rnn(*inputs, 3, "gru", impl="triton")


def test_old_devices_are_told_from_new_ones():
    assert obstacles.old_device((8, 0)) is obstacles.old_device((9, 0)) is obstacles.old_device((12, 0)) is None
    assert obstacles.old_device((7, 5)) == "it needs a device of compute capability 8.0, and this one has 7.5"


def test_the_sizes_of_the_papers_fit_where_they_are_to_run():
    h200, a100 = 227 << 10, 163 << 10
    for cell, D in (("gru", 32), ("gru", 160), ("lstm", 128)):
        assert obstacles.no_room(D, cell, torch.bfloat16, h200) is None
    assert obstacles.no_room(32, "gru", torch.float32, a100) is None
    assert "bfloat16" not in obstacles.no_room(128, "lstm", torch.bfloat16, a100)


@pytest.mark.parametrize("D", [1, 16, 17, 32, 33, 128, 129, 144, 145, 160])
def test_tiles_cover_a_width_with_powers_of_two(D):
    sizes, rows, warps = plan(D)
    assert sum(sizes[:-1]) < D <= sum(sizes) and rows >= 16 and warps in (4, 8)
    assert all(size >= 16 and size & (size - 1) == 0 for size in sizes)
    assert len(sizes) == 1 or sizes[0] == 128 >= sizes[1]


# The compiler, which needs no GPU


def built(kernel: str, cell: str, D: int, dtype: str, capability: int) -> tuple[int, str]:
    """Bytes of shared memory, and the assembly of a device of that compute capability."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from rtx.nn.kernels.triton import local_rnn_backward, local_rnn_forward

    function = {
        "forward": local_rnn_forward.forward_kernel,
        "backward": local_rnn_backward.backward_kernel,
        "collect": local_rnn_backward.collect_kernel,
    }[kernel]
    sizes, rows, warps = plan(D)
    constants = {"D": D, "CELL": cell, "GATES": GATES[cell], "KEPT": KEPT[cell], "SIZES": sizes, "ROWS": rows}
    constants |= {"PRECISION": "tf32x3", "WIDTH": GATES[cell] * D, "KEPT_WIDTH": KEPT[cell] * D, "SHARED": 2 * D}
    constants["COLUMNS"] = 64
    types = dict.fromkeys("BNTM", "i32") | {"memories": "*fp32"}
    names = function.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, f"*{dtype}") for name in names}
    source = ASTSource(function, signature, {name: value for name, value in constants.items() if name in names})
    done = compiled(source, GPUTarget("cuda", capability, 32), {"num_warps": warps, "num_stages": 1})
    return done.metadata.shared, done.asm["ptx"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "cell", "D", "dtype", "capability"),
    [
        ("forward", "gru", 32, "bf16", 90),
        ("backward", "gru", 32, "bf16", 90),
        ("collect", "gru", 32, "bf16", 90),
        ("forward", "rnn", 33, "fp32", 80),
        ("backward", "lstm", 16, "fp32", 90),
    ],
)
def test_kernels_compile_for_a_gpu_and_their_weights_fit(compiling, kernel, cell, D, dtype, capability):
    shared, assembly = compiling(built, kernel, cell, D, dtype, capability)
    assert shared <= shared_bytes(D, cell, {"bf16": 2, "fp32": 4}[dtype])
    assert f".target sm_{capability}" in assembly
    if kernel != "collect":
        assert "mma.sync" in assembly  # the tensor cores
