"""What only a GPU can show: the compiled kernels are right there, repeat themselves, and stay within their memory.

Run by `pytest -m gpu` where there is one; elsewhere tests/conftest.py leaves them out. None of them measures time.
"""

import itertools

import pytest
import test_triton_local_rnn as of_local_rnn
import test_triton_pooling as of_pooling
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import rtx
from rtx.nn import LocalRNN, MultiHeadAttention
from rtx.nn.kernels.graphs import FixedStream, recorded
from rtx.nn.kernels.local_rnn import local_rnn
from rtx.nn.kernels.pooling import pooling
from rtx.nn.kernels.sdpa import backend
from rtx.tasks import task_by_name

pytestmark = pytest.mark.gpu
GPU = "cuda"
CELLS = of_local_rnn.CELLS


def fits(*inputs: object) -> None:
    """Skips a test whose weights this device, not an H200, cannot hold."""
    said = local_rnn.kernels["triton"].obstacle(*inputs)
    if said and "shared memory" in said:
        pytest.skip(said)
    assert said is None


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm().clamp(min=1e-12))


# LocalRNN


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("B", "T", "D", "window"), [*of_local_rnn.SIZES[:5], (3, 100, 32, 7), (2, 70, 64, 9)])
def test_float32_equals_the_loops_with_all_gradients(cell, B, T, D, window):
    inputs = of_local_rnn.arguments(cell, B, T, D, torch.float32, GPU)
    fits(*inputs, window, cell)
    found = of_local_rnn.outputs_and_gradients("triton", inputs, window, cell)
    exact = of_local_rnn.arguments(cell, B, T, D, torch.float64)
    expected = of_local_rnn.outputs_and_gradients("naive" if T < 50 else "torch", exact, window, cell)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(wanted.abs().max())))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("D", [16, 32, 33, 64, 96, 128, 129, 160])
def test_bfloat16_is_within_a_hundredth(cell, D):
    inputs = of_local_rnn.arguments(cell, 2, 130, D, torch.bfloat16, GPU)
    fits(*inputs, 6, cell)
    found = of_local_rnn.outputs_and_gradients("triton", inputs, 6, cell)
    expected = of_local_rnn.outputs_and_gradients(
        "torch", of_local_rnn.arguments(cell, 2, 130, D, torch.float64), 6, cell
    )
    of_torch = of_local_rnn.outputs_and_gradients("torch", inputs, 6, cell)  # which also rounds every state
    bounds = [max(0.01, relative_error(one, wanted)) for one, wanted in zip(of_torch, expected, strict=True)]
    for one, wanted, bound in zip(found, expected, bounds, strict=True):
        assert relative_error(one, wanted) <= bound


@pytest.mark.parametrize("T", [1, 2, 31, 32, 33, 1000, 16_384])
def test_every_length(T):
    inputs = of_local_rnn.arguments("gru", 2, T, 32, torch.float32, GPU)
    found = of_local_rnn.outputs_and_gradients("triton", inputs, 7, "gru")
    exact = of_local_rnn.arguments("gru", 2, T, 32, torch.float64, GPU)
    expected = of_local_rnn.outputs_and_gradients("torch", exact, 7, "gru")
    assert max(map(relative_error, found, expected)) < 1e-5


def test_memory_grows_with_the_length_and_no_faster():
    layer = LocalRNN(32, 7).to(GPU)

    def peak(T: int) -> int:
        x = torch.randn(4, T, 32, device=GPU)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        layer(x).sum().backward()
        layer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    peak(1024)
    assert peak(8192) < 2.1 * peak(4096)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("cell", CELLS)
def test_the_same_numbers_in_every_run_and_on_every_stream(cell, dtype):
    inputs = of_local_rnn.arguments(cell, 4, 300, 32, dtype, GPU)
    once = of_local_rnn.outputs_and_gradients("triton", inputs, 7, cell)
    streams, found = [torch.cuda.Stream() for _ in range(3)], []
    torch.cuda.synchronize()
    for stream in streams:
        with torch.cuda.stream(stream):
            y = local_rnn(*inputs, 7, cell, impl="triton")
            weight = torch.linspace(-1, 1, y.numel(), dtype=dtype, device=GPU).view_as(y)
            found.append([y, *torch.autograd.grad((y * weight).sum(), inputs)])
    torch.cuda.synchronize()
    for again in found:
        assert all(torch.equal(one.detach().double().cpu(), first) for one, first in zip(again, once, strict=True))


def test_the_dispatcher_takes_the_kernels_where_they_can_be_used():
    inputs = of_local_rnn.arguments("gru", 2, 9, 32, torch.float32, GPU)
    assert local_rnn.choose(*inputs, 7, "gru") == "triton"
    wide = of_local_rnn.arguments("gru", 1, 3, 161, torch.float32, GPU)
    assert local_rnn.choose(*wide, 7, "gru") == "triton-steps"
    with torch.autocast(GPU, dtype=torch.bfloat16):
        assert local_rnn(*inputs, 7, "gru").dtype == torch.bfloat16
    jacobian = torch.func.jacrev(lambda x: local_rnn(x, *inputs[1:], 7, "gru"))(inputs[0].detach())
    assert jacobian.shape == (2, 9, 32, 2, 9, 32)


# LocalRNN, wider than the chip can hold


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("B", "T", "D", "window"), [(2, 7, 5, 3), (3, 11, 161, 2), (2, 130, 512, 7), (1, 1, 200, 4)])
def test_steps_between_products_equal_the_loops_with_all_gradients(cell, B, T, D, window):
    found = of_local_rnn.outputs_and_gradients(
        "triton-steps", of_local_rnn.arguments(cell, B, T, D, torch.float32, GPU), window, cell
    )
    exact = of_local_rnn.arguments(cell, B, T, D, torch.float64)
    expected = of_local_rnn.outputs_and_gradients("naive" if B * T * D < 1e4 else "torch", exact, window, cell)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(wanted.abs().max())))


@pytest.mark.parametrize("cell", CELLS)
def test_steps_in_bfloat16_are_as_near_as_torchs(cell):
    found, of_torch = (
        of_local_rnn.outputs_and_gradients(impl, inputs, 6, cell)
        for inputs in [of_local_rnn.arguments(cell, 2, 130, 256, torch.bfloat16, GPU)]
        for impl in ("triton-steps", "torch")
    )
    exact = of_local_rnn.arguments(cell, 2, 130, 256, torch.float64)
    expected = of_local_rnn.outputs_and_gradients("torch", exact, 6, cell)
    for one, other, wanted in zip(found, of_torch, expected, strict=True):
        assert relative_error(one, wanted) <= max(0.01, 1.5 * relative_error(other, wanted))


def test_steps_find_the_same_numbers_in_every_run():
    inputs = of_local_rnn.arguments("lstm", 4, 300, 256, torch.bfloat16, GPU)
    once, again = (of_local_rnn.outputs_and_gradients("triton-steps", inputs, 7, "lstm") for _ in range(2))
    assert all(map(torch.equal, once, again))


# Feed-forward attention


@pytest.mark.parametrize(("kind", "leak"), of_pooling.KINDS)
@pytest.mark.parametrize(("lengths", "F", "D"), [*of_pooling.SIZES, ((16_384, 50), 2, 100), ((90,), 31, 128)])
def test_pooling_equals_the_loops_with_all_gradients(kind, leak, lengths, F, D):
    inputs = of_pooling.arguments(kind, lengths, F, D, torch.float32, GPU)
    assert pooling.choose(*inputs, leak) == "triton"
    found = of_pooling.outputs_and_gradients("triton", inputs, leak)
    oracle = "naive" if max(lengths) < 100 else "torch"
    expected = of_pooling.outputs_and_gradients(oracle, of_pooling.arguments(kind, lengths, F, D, torch.float64), leak)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(wanted.abs().max())))


def test_pooling_finds_the_same_numbers_in_every_run():
    inputs = of_pooling.arguments("attention", (5000, 700, 1), 2, 100, torch.float32, GPU)
    once, again = (of_pooling.outputs_and_gradients("triton", inputs, "coded") for _ in range(2))
    assert all(map(torch.equal, once, again))


# Attention


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "width"), [*itertools.product((torch.bfloat16, torch.float32), (16, 40, 64))])
def test_attention_goes_by_the_kernel_that_the_rule_names(dtype, width, dropout):
    attention = MultiHeadAttention(2 * width, 2, dropout).to(GPU, dtype).train()
    x = torch.randn(2, 100, 2 * width, device=GPU, dtype=dtype, requires_grad=True)
    named = backend(dtype, width, torch.cuda.get_device_capability())
    with sdpa_kernel(getattr(SDPBackend, named)):  # no other one may be used: an error, if this one cannot
        attention(x).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()


# Whole models, and graphs


@pytest.mark.parametrize(("name", "sizes"), [("digits", {"d_model": 32}), ("nottingham", {"d_model": 48})])
def test_a_model_on_the_gpu_is_the_model_on_the_cpu(name, sizes):
    from benchmarks.training import random_batch

    task = task_by_name(name)
    torch.manual_seed(0)
    model = rtx.build(task, "r-transformer", **sizes, layers=2, heads=2, window=5, cell="gru").eval()
    batch = random_batch(task, 3, 40, 40)
    expected = task.loss(task.predict(model, batch), batch).total
    gradients = torch.autograd.grad(expected, list(model.parameters()))
    model, there = model.to(GPU), batch._replace(**{k: v.to(GPU) for k, v in batch._asdict().items()})
    found = task.loss(task.predict(model, there), there).total
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    for one, wanted in zip(torch.autograd.grad(found, list(model.parameters())), gradients, strict=True):
        torch.testing.assert_close(one.cpu(), wanted, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_a_recorded_stream_says_what_the_stream_says():
    torch.manual_seed(0)
    model = rtx.LanguageModel(rtx.RTransformer(64, 2, 4, 7, "gru"), 50).to(GPU).eval()
    tokens = torch.randint(0, 50, (2, 60), device=GPU)
    _, state = model.step(tokens[:, 0])
    stream = FixedStream(model.step, tokens[:, 1], state, 60).record()
    for column in tokens[:, 1:].unbind(1):
        expected, state = model.step(column, state)
        torch.testing.assert_close(stream(column), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backbone", [rtx.RTransformer(64, 2, 4, 7, "gru"), rtx.Transformer(64, 2, 4)])
def test_a_text_is_the_same_from_a_graph_where_the_model_can_and_elsewhere(backbone):
    torch.manual_seed(0)
    model = rtx.LanguageModel(backbone, 50).to(GPU).eval()
    prompt = torch.randint(0, 50, (1, 10), device=GPU)
    by_itself, step_by_step = (model.generate(prompt, 60, 0.0, in_place=how) for how in (None, False))
    assert torch.equal(by_itself, step_by_step)


def test_mc_rnns_time_loop_can_be_recorded():
    torch.manual_seed(0)
    model, x = rtx.MCRNN(32, block=4).to(GPU), torch.randn(2, 9, 32, device=GPU)
    expected = torch.autograd.grad(model(x).square().mean(), [*model.parameters()])

    def step() -> None:
        model.zero_grad(set_to_none=False)
        model(x).square().mean().backward()

    recorded(step)()
    for one, wanted in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(one.grad, wanted, rtol=1e-4, atol=1e-6)


def test_a_recorded_training_step_learns_what_the_step_learns():
    def trained(record: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = rtx.RTransformer(32, 2, 2, 7, "gru").to(GPU)
        adam = torch.optim.Adam(model.parameters(), 1e-3, capturable=True)
        draws = torch.Generator(GPU).manual_seed(1)
        x = torch.randn(4, 50, 32, device=GPU, generator=draws)

        def step() -> None:
            adam.zero_grad(set_to_none=False)
            model(x).square().mean().backward()
            adam.step()

        run = recorded(step) if record else step  # recording runs it three times
        for _ in range(5 if record else 8):
            run()
        return [p.detach().clone() for p in model.parameters()]

    for one, wanted in zip(trained(True), trained(False), strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-5)
