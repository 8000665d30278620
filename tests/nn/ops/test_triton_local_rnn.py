"""LocalRNN in Triton: interpreted on the CPU against the reference, compiled without a GPU, and its conditions."""

import re

import numpy as np
import pytest
import torch
from comparison import outputs_and_gradients, stored_bytes
from operands import CELLS, GATES

from rtx.nn.ops.local_rnn import local_rnn

SIZES = [(1, 1, 1, 1), (2, 7, 5, 3), (1, 40, 33, 4), (2, 5, 7, 9), (3, 11, 16, 2), (2, 3, 128, 3)]
"""B, T, D and the window: one of everything; a window longer than the sequence; tiles that end inside a sequence."""
EACH = pytest.mark.parametrize("cell", CELLS)


def arguments(cell: str, B: int, T: int, D: int, dtype: torch.dtype, device: str = "cpu") -> list[torch.Tensor]:
    """Return x, w_ih, w_hh, b_ih and b_hh, with numbers that every dtype can express."""
    draws, G = torch.Generator().manual_seed(B + T + D), GATES[cell] * D
    shapes, scales = [(B, T, D), (G, D), (G, D), (G,), (G,)], [1.0, D**-0.5, D**-0.5, 1.0, 1.0]
    found = [torch.randn(s, generator=draws) * scale for s, scale in zip(shapes, scales, strict=True)]
    return [one.to(torch.bfloat16).to(device, dtype).requires_grad_() for one in found]


def results(impl: str, inputs: list[torch.Tensor], window: int, cell: str) -> list[torch.Tensor]:
    """Return outputs and gradients as float64 on the CPU."""
    found = outputs_and_gradients(local_rnn(*inputs, window, cell, impl=impl), inputs)
    return [one.detach().double().cpu() for one in found]


# These functions run in another process, which sends NumPy arrays back.


def computed(impl: str, cell: str, B: int, T: int, D: int, window: int, dtype: torch.dtype) -> list[np.ndarray]:
    return [one.numpy() for one in results(impl, arguments(cell, B, T, D, dtype), window, cell)]


def refusal() -> str:
    inputs = arguments("gru", 2, 4, 3, torch.float32)
    with pytest.raises(RuntimeError) as error:
        torch.autograd.grad(local_rnn(*inputs, 3, "gru", impl="triton").sum(), inputs, create_graph=True)
    return str(error.value)


def strided_with_one_gradient_twice(impl: str) -> list[np.ndarray]:
    x, *weights = (one.detach() for one in arguments("gru", 4, 5, 6, torch.float32))
    weights[1].requires_grad_()
    y = local_rnn(x.transpose(0, 1), *weights, 3, "gru", impl=impl)
    once, again = (torch.autograd.grad(y.sum(), weights[1], retain_graph=True)[0] for _ in range(2))
    with torch.no_grad():
        without = local_rnn(x.transpose(0, 1), *weights, 3, "gru", impl=impl)
    assert torch.equal(once, again) and torch.equal(without, y) and not without.requires_grad
    return [y.detach().numpy(), once.numpy()]


def stored(T: int) -> int:
    return stored_bytes(lambda: local_rnn(*arguments("gru", 1, T, 4, torch.float32), 5, "gru", impl="triton"))


def under_autocast() -> tuple[torch.dtype, torch.dtype]:
    inputs = arguments("gru", 2, 5, 7, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = local_rnn(*inputs, 3, "gru", impl="triton")
    return y.dtype, torch.autograd.grad(y.float().sum(), inputs)[0].dtype


def obstacle(dtype: torch.dtype, D: int) -> tuple[str, str | None]:
    """Return which implementation is chosen, and why Triton cannot be used."""
    inputs = (*arguments("lstm", 1, 2, D, dtype), 3, "lstm")
    return local_rnn.choose(*inputs), local_rnn.implementations["triton"].obstacle(*inputs)


def product_precision(setting: str) -> str:
    from rtx.nn.ops.local_rnn.triton import _options

    torch.set_float32_matmul_precision(setting)
    return _options(8, "gru")["PRECISION"]


def assert_near(found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=tolerance, atol=tolerance * max(1.0, np.abs(wanted).max()))


@pytest.mark.slow
@EACH
@pytest.mark.parametrize(("B", "T", "D", "window"), SIZES)
def test_interpreted_outputs_and_gradients_equal_the_reference(interpreted, cell, B, T, D, window):
    found = interpreted(computed, "triton", cell, B, T, D, window, torch.float32)
    assert_near(found, computed("reference", cell, B, T, D, window, torch.float64), 1e-5)


@EACH
def test_bfloat16_is_near(interpreted, cell):
    found = interpreted(computed, "triton", cell, 2, 20, 24, 5, torch.bfloat16)
    expected = computed("reference", cell, 2, 20, 24, 5, torch.float64)
    for one, wanted in zip(found, expected, strict=True):
        # the interpreter cuts digits off where a GPU rounds, so the error is twice as large
        assert 0 < np.linalg.norm(one - wanted) < 0.02 * np.linalg.norm(wanted)


def test_autocast_computes_in_bfloat16_and_gradients_stay_float32(interpreted):
    assert interpreted(under_autocast) == (torch.bfloat16, torch.float32)


def test_second_derivatives_are_refused(interpreted):
    assert re.match(r'local_rnn: .*implementation\("torch"\)', interpreted(refusal))


def test_strides_constant_weights_and_a_second_backward_pass(interpreted):
    found = interpreted(strided_with_one_gradient_twice, "triton")
    assert_near(found, strided_with_one_gradient_twice("torch"), 1e-5)


def test_stored_memory_is_linear_in_the_length(interpreted):
    sizes = [interpreted(stored, T) for T in (32, 64, 96)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] > 0


def test_triton_is_used_only_if_it_is_asked_for(interpreted):
    chosen, reason = interpreted(obstacle, torch.float32, 8)
    assert chosen != "triton" and reason is None


def test_other_dtypes_wide_states_and_the_cpu_are_refused(interpreted):
    assert "float64" in interpreted(obstacle, torch.float64, 8)[1]
    assert (
        interpreted(obstacle, torch.float32, 128)[1] is None and "129" in interpreted(obstacle, torch.float32, 129)[1]
    )
    inputs = arguments("gru", 1, 2, 3, torch.float32)
    with pytest.raises(ValueError, match="^impl: local_rnn .*'triton'.*cpu"):
        local_rnn(*inputs, 3, "gru", impl="triton")


def test_float32_products_are_as_exact_as_torchs_setting(interpreted):
    settings = ("high", "highest")  # the last one is torch's default, which the other tests need
    assert [interpreted(product_precision, setting) for setting in settings] == ["tf32", "tf32x3"]


def built(kernel: str, cell: str, D: int, dtype: str, capability: int) -> tuple[int, int, str]:
    """Compile a kernel; return its shared memory, the estimate for it, and the assembly."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from rtx.nn.ops.local_rnn import triton as kernels

    function = {"forward": kernels.forward_kernel, "backward": kernels.backward_kernel}[kernel]
    options = kernels._options(D, cell)
    launch = {name: options.pop(name) for name in ("num_warps", "num_stages")}
    types = dict.fromkeys("NTM", "i32") | {"memories": "*fp32"}
    signature = {name: "constexpr" if name in options else types.get(name, f"*{dtype}") for name in function.arg_names}
    source = ASTSource(function, signature, {name: one for name, one in options.items() if name in signature})
    done = compiled(source, GPUTarget("cuda", capability, 32), launch)
    width, rows, wide = options["WIDTH"], options["ROWS"], dtype == "fp32"
    weights = options["GATES"] * width * width * (2 if wide else 1)
    estimate = (weights + (options["STORED"] + 1) * rows * width) * (4 if wide else 2)
    return done.metadata.shared, estimate, done.asm["ptx"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "cell", "D", "dtype", "capability"),
    [
        ("forward", "gru", 32, "bf16", 90),
        ("backward", "gru", 32, "bf16", 90),
        ("forward", "rnn", 33, "fp32", 80),
        ("backward", "lstm", 16, "fp32", 90),
    ],
)
def test_kernels_compile_for_a_gpu_and_their_weights_fit(compiling, kernel, cell, D, dtype, capability):
    shared, estimate, assembly = compiling(built, kernel, cell, D, dtype, capability)
    assert shared <= estimate
    assert f".target sm_{capability}" in assembly and "mma.sync" in assembly  # it uses the tensor cores
