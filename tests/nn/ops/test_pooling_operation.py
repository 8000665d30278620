"""Feed-forward attention's pooling: its implementations against the reference, its padding, and its memory."""

import itertools

import pytest
import torch
from comparison import NATIVE, Largest, assert_near, leaves, outputs_and_gradients, stored_bytes
from operands import precision
from torch import Tensor

from rtx.nn.ops.pooling import blocks, pooling
from rtx.nn.ops.pooling.torch import LEAKS

VARIANTS = pytest.mark.parametrize(("scored", "leak"), list(itertools.product((True, False), LEAKS)))
EACH = pytest.mark.parametrize("impl", ["blocks", NATIVE])
LENGTHS = torch.tensor([3, 7, 1, 7, 5])


def drawn(B: int, T: int, F: int = 3, D: int = 6, scored: bool = True, dtype: torch.dtype = torch.float64) -> list:
    """Return x and the layer's parameters; without a score the pooling is a mean."""
    torch.manual_seed(0)
    shapes = [(B, T, F), (D, F), (D,), (1, D), (1,)]
    return leaves([torch.randn(shape) for shape in shapes[: 5 if scored else 3]], dtype)


def run(inputs: list[Tensor], lengths: Tensor, leak: str, impl: str) -> Tensor:
    return pooling(inputs[0], lengths, *inputs[1:], *[None] * (5 - len(inputs)), leak, impl=impl)


def compare(impl: str, oracle: str, inputs: list[Tensor], lengths: Tensor, leak: str, dtype=torch.float64) -> None:
    """Compare outputs and gradients with another implementation, which computes in this dtype."""
    exact = leaves(inputs, dtype)
    found = outputs_and_gradients(run(inputs, lengths, leak, impl), inputs)
    expected = outputs_and_gradients(run(exact, lengths, leak, oracle), exact)
    assert_near(found, expected, precision(impl)[1])


@pytest.fixture(params=[blocks.ROWS, 16, 3], ids=["whole sequences", "several sequences", "a part of one sequence"])
def rows(request, monkeypatch):
    """The number of steps in a tile of the version in blocks."""
    monkeypatch.setattr(blocks, "ROWS", request.param)


@pytest.mark.parametrize("impl", ["blocks", NATIVE, "torch"])
@VARIANTS
def test_outputs_and_gradients_equal_the_reference(impl, scored, leak, rows):
    compare(impl, "reference", drawn(5, 7, scored=scored, dtype=precision(impl)[0]), LENGTHS, leak)


@EACH
@VARIANTS
@pytest.mark.parametrize(("longest", "F", "D"), [(1, 1, 1), (66, 2, 37), (130, 5, 16), (3000, 3, 6)])
def test_long_sequences_and_other_widths_equal_torch(impl, scored, leak, longest, F, D):
    lengths = torch.tensor([longest, 1, 64, 65, 128]).clamp(max=longest)
    compare(impl, "torch", drawn(5, longest, F, D, scored, precision(impl)[0]), lengths, leak)


@EACH
@pytest.mark.parametrize(("leak", "corner"), [("printed", 0.01), ("coded", 0.0)])
def test_at_the_corner_of_the_leak_the_gradient_is_torchs(impl, leak, corner, rows):
    dtype, _ = precision(impl)
    inputs = drawn(5, 7, dtype=dtype)
    with torch.no_grad():
        inputs[1].zero_(), inputs[2].fill_(corner)
    compare(impl, "torch", inputs, LENGTHS, leak, dtype)  # another dtype would be on another side of the corner


@EACH
@VARIANTS
def test_the_padding_is_not_read_and_has_no_gradient(impl, scored, leak, rows):
    inputs = drawn(5, 7, scored=scored, dtype=precision(impl)[0])
    expected = outputs_and_gradients(run(inputs, LENGTHS, leak, impl), inputs)
    padding = torch.arange(7) >= LENGTHS[:, None]
    inputs[0].data[padding] = torch.nan
    found = outputs_and_gradients(run(inputs, LENGTHS, leak, impl), inputs)
    assert all(map(torch.equal, found, expected))
    assert not found[1][padding].any() and found[1][~padding].any()


@EACH
@pytest.mark.parametrize("leak", LEAKS)
def test_a_nan_in_a_real_step_is_in_the_context(impl, leak):
    inputs = [x.detach() for x in drawn(2, 130, dtype=torch.float32)]
    inputs[0][1, 70, 0] = torch.nan
    context = run(inputs, torch.tensor([130, 130]), leak, impl)
    assert context.isnan().any(-1).tolist() == [False, True]


@EACH
@VARIANTS
def test_the_memory_for_the_backward_pass_does_not_grow_with_time(impl, scored, leak):
    def stored(T: int) -> int:
        x, *weights = drawn(2, T, scored=scored, dtype=torch.float32)
        x = x.detach()
        return stored_bytes(lambda: run([x, *weights], torch.tensor([T, T // 2]), leak, impl)) - 4 * x.numel()

    assert stored(5_000) == stored(20_000) < 4 * 300


@VARIANTS
def test_blocks_never_has_the_states_of_all_steps(scored, leak):
    def largest(T: int) -> int:
        x, *weights = drawn(2, T, scored=scored, dtype=torch.float32)
        x = x.detach()
        with Largest() as mode:
            outputs_and_gradients(run([x, *weights], torch.tensor([T, T // 2]), leak, "blocks"), weights)
        return mode.numbers

    assert largest(5_000) == largest(20_000) < 2 * 5_000 * 6


def test_autocast_and_half_precision_change_the_dtype_and_little_else():
    x, *weights = drawn(5, 3000, dtype=torch.float32)
    x, lengths = x.detach(), torch.full((5,), 3000)
    expected = outputs_and_gradients(run([x, *weights], lengths, "printed", "blocks"), weights)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert run([x, *weights], lengths, "printed", "torch").dtype == torch.bfloat16
        found = outputs_and_gradients(run([x, *weights], lengths, "printed", "blocks"), weights)
    assert found[0].dtype == torch.bfloat16 and {one.dtype for one in found[1:]} == {torch.float32}
    assert_near(found, expected, 0.02)
    half = [one.bfloat16() for one in (x, *weights)]
    assert run(half, lengths, "printed", "blocks").dtype == torch.bfloat16
