"""Feed-forward attention's Triton kernels, step by step on the CPU, against the loops."""

import numpy as np
import pytest
import torch

from rtx.nn.kernels.pooling import pooling
from rtx.nn.kernels.triton import obstacles
from rtx.nn.kernels.triton.plan import pooling_plan

KINDS = [(kind, leak) for kind in ("attention", "mean") for leak in ("printed", "coded")]
SIZES = [((3, 7, 1), 2, 6), ((1,), 1, 1), ((40, 33), 3, 33), ((530, 20, 512), 2, 9), ((5, 9), 17, 100)]
"""Lengths, F and D: a part of a tile, one number of everything, the bias in a tile's last row, several programs."""


def arguments(
    kind: str, lengths: tuple[int, ...], F: int, D: int, dtype: torch.dtype, device: str = "cpu", padding: float = 7.0
) -> list[torch.Tensor | None]:
    """x, lengths and the layer; leaves."""
    draws = torch.Generator().manual_seed(F + D)
    shapes = [(len(lengths), max(lengths), F), (D, F), (D,), (1, D), (1,)]
    scales = [1.0, F**-0.5, 0.5, D**-0.5, 0.5]
    x, *layer = (torch.randn(s, generator=draws) * scale for s, scale in zip(shapes, scales, strict=True))
    for row, n in zip(x, lengths, strict=True):
        row[n:] = padding
    x, *layer = (one.to(torch.bfloat16).to(device, dtype).requires_grad_() for one in (x, *layer))
    return [x, torch.tensor(lengths, device=device), *layer[:2], *(layer[2:] if kind == "attention" else (None, None))]


def outputs_and_gradients(impl: str, inputs: list[torch.Tensor | None], leak: str) -> list[torch.Tensor]:
    c = pooling(*inputs, leak, impl=impl)
    weights = torch.linspace(-1, 1, c.numel(), dtype=c.dtype, device=c.device).view_as(c)
    leaves = [one for one in inputs if one is not None and one.requires_grad]
    gradients = torch.autograd.grad((c * weights).sum(), leaves, materialize_grads=True)
    return [one.detach().double().cpu() for one in (c, *gradients)]


def computed(impl: str, kind: str, leak: str, *sizes: object, **more: object) -> list[np.ndarray]:
    return [one.numpy() for one in outputs_and_gradients(impl, arguments(kind, *sizes, **more), leak)]


@pytest.mark.parametrize(("kind", "leak"), KINDS)
@pytest.mark.parametrize(("lengths", "F", "D"), SIZES)
def test_equals_the_loops_with_all_gradients(interpreted, kind, leak, lengths, F, D):
    found = interpreted(computed, "triton", kind, leak, lengths, F, D, torch.float32)
    oracle = "naive" if max(lengths) < 100 else "torch"
    expected = computed(oracle, kind, leak, lengths, F, D, torch.float64)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


def at_the_corner(impl: str, leak: str) -> list[np.ndarray]:
    x, lengths, weight, bias, *scorer = arguments("attention", (3, 2), 2, 4, torch.float32)
    with torch.no_grad():
        weight.zero_(), bias.fill_({"printed": 0.01, "coded": 0.0}[leak])
    found = outputs_and_gradients(impl, [x, lengths, weight, bias, *scorer], leak)
    return [one.numpy() for one in found]


@pytest.mark.parametrize("leak", ["printed", "coded"])
def test_at_the_leaks_corner_the_gradient_is_torchs(interpreted, leak):
    for one, wanted in zip(interpreted(at_the_corner, "triton", leak), at_the_corner("torch", leak), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


def with_padding(padding: float) -> list[np.ndarray]:
    inputs = arguments("attention", (3, 7, 1), 2, 6, torch.float32, padding=padding)
    return [one.numpy() for one in outputs_and_gradients("triton", inputs, "coded")]


def test_what_stands_in_the_padding_is_not_read(interpreted):
    found, expected = interpreted(with_padding, float("nan")), interpreted(with_padding, 1.0)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, wanted)
    assert not found[1][0, 3:].any() and found[1][0, :3].all()


def second_order(impl: str) -> list[np.ndarray]:
    inputs = arguments("attention", (3, 7, 1), 2, 6, torch.float32)
    leaves = [one for one in inputs if one.requires_grad]
    c = pooling(*inputs, "coded", impl=impl).square().sum()
    first = torch.autograd.grad(c, leaves, create_graph=True)
    return [one.numpy() for one in torch.autograd.grad(sum(one.square().sum() for one in first), leaves)]


def test_gradients_have_gradients(interpreted):
    for one, wanted in zip(interpreted(second_order, "triton"), second_order("torch"), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def of_the_scores_alone(impl: str) -> list[np.ndarray]:
    inputs = [one.detach() for one in arguments("attention", (3, 7, 1), 2, 6, torch.float32)]
    inputs[4].requires_grad_()
    strided = inputs[0].transpose(0, 1).contiguous().transpose(0, 1)
    c = pooling(strided, *inputs[1:], "coded", impl=impl)
    once, again = (torch.autograd.grad(c.sum(), inputs[4], retain_graph=True)[0] for _ in range(2))
    assert torch.equal(once, again)
    return [c.detach().numpy(), once.numpy()]


def test_strides_and_weights_that_do_not_learn(interpreted):
    for one, wanted in zip(interpreted(of_the_scores_alone, "triton"), of_the_scores_alone("torch"), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


def laid_out_otherwise(impl: str) -> list[np.ndarray]:
    inputs = arguments("attention", (3, 7, 1), 2, 6, torch.float32)
    lengths, score = torch.tensor([3, 9, 7, 9, 1, 9])[::2], inputs[4].detach().expand(2, -1).T.contiguous()[:, :1].T
    inputs[1], inputs[4] = lengths, score.requires_grad_()
    leaves = [one for one in inputs if one.requires_grad]
    c = pooling(*inputs, "coded", impl=impl)
    gradients = torch.autograd.grad(c.T, leaves, torch.linspace(-1, 1, c.numel()).view(6, 3))
    return [one.detach().numpy() for one in (c, *gradients)]


def test_lengths_weights_and_gradients_lie_in_memory_as_they_like(interpreted):
    for one, wanted in zip(interpreted(laid_out_otherwise, "triton"), laid_out_otherwise("torch"), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


def in_half() -> tuple[list[str], list[np.ndarray]]:
    inputs = arguments("attention", (3, 7, 1), 2, 6, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        c = pooling(*inputs, "coded", impl="triton")
    half = pooling(*(one.bfloat16() if one.is_floating_point() else one for one in inputs), "coded", impl="triton")
    gradient = torch.autograd.grad(c.sum(), inputs[2])[0]
    return [str(one.dtype) for one in (c, gradient, half)], [one.detach().float().numpy() for one in (c, half)]


def test_half_precision_changes_the_dtype_and_little_else(interpreted):
    dtypes, found = interpreted(in_half)
    assert dtypes == ["torch.bfloat16", "torch.float32", "torch.bfloat16"]
    wanted = computed("naive", "attention", "coded", (3, 7, 1), 2, 6, torch.float64)[0]
    for one in found:
        np.testing.assert_allclose(one, wanted, rtol=0.01, atol=0.01)


def reasons(F: int, D: int, dtype: torch.dtype) -> tuple[str, str | None]:
    inputs = arguments("mean", (2,), F, D, dtype)
    return pooling.choose(*inputs, "coded"), pooling.kernels["triton"].obstacle(*inputs, "coded")


def test_what_stands_in_the_way(interpreted):
    chosen, obstacle = interpreted(reasons, 2, 6, torch.float32)
    assert chosen != "triton" and obstacle is None
    assert "up to 31 inputs and 128 units, and here are 32 and 6" in interpreted(reasons, 32, 6, torch.float32)[1]
    assert "float32 and bfloat16, and there is torch.float64" in interpreted(reasons, 2, 6, torch.float64)[1]
    assert "CUDA" in obstacles.no_pooling(*arguments("mean", (2,), 2, 6, torch.float32))


@pytest.mark.parametrize(("F", "D"), [(1, 1), (15, 16), (16, 17), (31, 128)])
def test_tiles_have_room_for_the_bias(F, D):
    inputs, units, rows, span, _ = pooling_plan(F, D)
    assert inputs >= max(16, F + 1) and units >= max(16, D) and span % rows == 0
    assert all(size & (size - 1) == 0 for size in (inputs, units, rows))


def built(kernel: str, mean: bool) -> str:
    """The assembly for an H200, at the sizes of the paper."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from rtx.nn.kernels.triton import pooling_backward, pooling_forward

    function = {
        "sums": pooling_forward.sums_kernel,
        "context": pooling_forward.context_kernel,
        "gradients": pooling_backward.gradients_kernel,
    }[kernel]
    inputs, units, rows, span, warps = pooling_plan(2, 100)
    constants = {"F": 2, "D": 100, "INPUTS": inputs, "UNITS": units, "ROWS": rows, "SPAN": span, "LEAK": "coded"}
    constants |= {"MEAN": mean, "WANTS_X": True, "PRECISION": "tf32x3"}
    types, names = {"lengths": "*i64", "T": "i32", "S": "i32"}, function.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in names}
    source = ASTSource(function, signature, {name: value for name, value in constants.items() if name in names})
    return compiled(source, GPUTarget("cuda", 90, 32), {"num_warps": warps, "num_stages": 1}).asm["ptx"]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["sums", "context", "gradients"])
def test_kernels_compile_for_a_gpu(compiling, kernel):
    assembly = compiling(built, kernel, kernel == "sums")
    assert ".target sm_90" in assembly and ("mma.sync" in assembly) == (kernel != "context")
