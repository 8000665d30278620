"""Tests that need a CUDA device: LocalRNN in Triton, and models on the GPU against the CPU. None measures time."""

import pytest
import torch
from comparison import outputs_and_gradients
from operands import CELLS
from test_triton_local_rnn import SIZES, arguments, results

from rtx.models import MODELS, FeedForwardAttention
from rtx.nn import LocalRNN
from rtx.nn.ops import implementation
from rtx.nn.ops.attention import causal_attention
from rtx.nn.ops.local_rnn import local_rnn
from rtx.tasks.build import hyperparameter_names

pytestmark = pytest.mark.gpu
GPU = "cuda"
SIZE = {"d_model": 16, "layers": 2, "heads": 2, "window": 4, "segment": 4, "memory": 6, "d_hidden": 12}
EACH = pytest.mark.parametrize("cell", CELLS)


def skip_if_too_large(*inputs: object) -> None:
    """Skip a test whose weights do not fit this device's shared memory."""
    reason = local_rnn.implementations["triton"].obstacle(*inputs)
    if reason and "shared memory" in reason:
        pytest.skip(reason)
    assert reason is None


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm().clamp(min=1e-12))


@EACH
@pytest.mark.parametrize(("B", "T", "D", "window"), [*SIZES, (3, 100, 32, 7), (2, 70, 64, 9), (2, 4096, 32, 7)])
def test_triton_in_float32_equals_the_reference(cell, B, T, D, window):
    inputs = arguments(cell, B, T, D, torch.float32, GPU)
    skip_if_too_large(*inputs, window, cell)
    found = results("triton", inputs, window, cell)
    expected = results("reference" if T < 50 else "torch", arguments(cell, B, T, D, torch.float64), window, cell)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(wanted.abs().max())))


@EACH
@pytest.mark.parametrize("D", [16, 32, 33, 64, 96, 128])
def test_triton_in_bfloat16_is_as_near_as_torch(cell, D):
    inputs = arguments(cell, 2, 130, D, torch.bfloat16, GPU)
    skip_if_too_large(*inputs, 6, cell)
    found, of_torch = (results(impl, inputs, 6, cell) for impl in ("triton", "torch"))
    expected = results("torch", arguments(cell, 2, 130, D, torch.float64), 6, cell)
    for one, other, wanted in zip(found, of_torch, expected, strict=True):
        assert relative_error(one, wanted) <= max(0.01, relative_error(other, wanted))


@EACH
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_triton_gives_the_same_bits_in_every_run_and_on_every_stream(cell, dtype):
    inputs = arguments(cell, 4, 300, 32, dtype, GPU)
    once = outputs_and_gradients(local_rnn(*inputs, 7, cell, impl="triton"), inputs)
    streams, found = [torch.cuda.Stream() for _ in range(3)], []
    torch.cuda.synchronize()
    for stream in streams:
        with torch.cuda.stream(stream):
            found.append(outputs_and_gradients(local_rnn(*inputs, 7, cell, impl="triton"), inputs))
    torch.cuda.synchronize()
    for again in found:
        assert all(map(torch.equal, again, once))


@pytest.mark.parametrize("impl", ["triton", "torch"])
def test_local_rnns_memory_is_linear_in_the_length(impl):
    layer = LocalRNN(32, 7).to(GPU)

    def peak(T: int) -> int:
        x = torch.randn(4, T, 32, device=GPU)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with implementation(impl, "local_rnn"):
            layer(x).sum().backward()
        layer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    peak(1024)
    assert peak(8192) < 2.1 * peak(4096)


def test_on_a_gpu_torchs_functions_are_chosen_and_triton_only_on_request():
    inputs = arguments("gru", 2, 9, 32, torch.float32, GPU)
    q = torch.randn(1, 2, 9, 4, device=GPU)
    assert local_rnn.choose(*inputs, 7, "gru") == "torch"
    assert causal_attention.choose(q, q, q, 0.1) == "sdpa"
    with implementation("triton"):
        assert local_rnn.choose(*inputs, 7, "gru") == "triton"
        with torch.autocast(GPU, dtype=torch.bfloat16):
            assert local_rnn(*inputs, 7, "gru").dtype == torch.bfloat16


def assert_same_on_the_gpu(
    model: torch.nn.Module, *inputs: torch.Tensor, impl: str = "torch", tolerance: float = 1e-8
) -> None:
    """Compare output and gradients on the CPU with those on the GPU, where LocalRNN uses this implementation."""
    expected = outputs_and_gradients(model(*inputs), list(model.parameters()))
    model.to(GPU)
    with implementation(impl, "local_rnn"):
        found = outputs_and_gradients(model(*(x.to(GPU) for x in inputs)), list(model.parameters()))
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_on_the_gpu_is_the_model_on_the_cpu(name):
    torch.manual_seed(0)
    sizes = {key: size for key, size in SIZE.items() if key in hyperparameter_names(name)}
    assert_same_on_the_gpu(MODELS[name](**sizes).double(), torch.randn(3, 20, 16).double())


def test_feed_forward_attention_on_the_gpu_is_the_model_on_the_cpu():
    torch.manual_seed(0)
    model = FeedForwardAttention(16, 2).double()
    assert_same_on_the_gpu(model, torch.randn(3, 20, 16).double(), torch.tensor([20, 1, 7]))


@pytest.mark.parametrize("impl", ["triton", "torch"])
def test_an_r_transformer_in_float32_on_the_gpu_is_the_model_on_the_cpu(impl):
    torch.manual_seed(0)
    model = MODELS["r-transformer"](16, 2, 2, 4)
    assert_same_on_the_gpu(model, torch.randn(3, 40, 16), impl=impl, tolerance=1e-3)
