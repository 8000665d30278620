"""Feed-forward attention in tiles: the equations' outputs and gradients, in a memory that does not grow with T."""

import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rtx.nn.kernels import pooling_tiles
from rtx.nn.kernels.pooling import pooling
from rtx.nn.kernels.pooling_plain import LEAKS
from rtx.nn.kernels.pooling_tiles import tiles

SWITCHES = list(itertools.product(("attention", "mean"), LEAKS))
ROWS = [pooling_tiles.ROWS, 16, 3]  # of a tile: all sequences whole, several, a piece of one
LENGTHS = torch.tensor([3, 7, 1, 7, 5])


def layer(pooling: str = "attention", seed: int = 0, dtype: torch.dtype = torch.float64) -> list[torch.Tensor | None]:
    """Weights and biases of the states, D = 6, and of their scores; leaves."""
    torch.manual_seed(seed)
    shapes = [(6, 3), (6,), (1, 6), (1,)] if pooling == "attention" else [(6, 3), (6,)]
    found = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    return [*found, *[None] * (4 - len(found))]


def sequences(T: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, T, 3, dtype=torch.float64, generator=generator).requires_grad_()


def gradients(
    c: torch.Tensor, *of: torch.Tensor | None, again: bool = False, keep: bool = False
) -> tuple[torch.Tensor, ...]:
    weights = torch.arange(c.numel(), dtype=c.dtype).view(c.shape).cos()
    leaves = [one for one in of if one is not None]
    loss = (c * weights).sum()
    return torch.autograd.grad(loss, leaves, retain_graph=again or keep, create_graph=again, materialize_grads=True)


@pytest.mark.parametrize(("kind", "leak"), SWITCHES)
@pytest.mark.parametrize("rows", ROWS)
def test_equals_the_loops_of_the_equations_with_all_gradients(monkeypatch, rows, kind, leak):
    monkeypatch.setattr(pooling_tiles, "ROWS", rows)
    x, weights = sequences(), layer(kind)
    found = pooling(x, LENGTHS, *weights, leak, impl="fused")
    expected = pooling(x, LENGTHS, *weights, leak, impl="naive")
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(gradients(found, x, *weights), gradients(expected, x, *weights), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("kind", "leak"), SWITCHES)
@pytest.mark.parametrize("T", [1, 50, 3000])
def test_fused_equals_torch_for_short_and_long_sequences(kind, leak, T):
    x, weights = sequences(T), layer(kind)
    lengths = (LENGTHS * T // 7).clamp(min=1)
    found, expected = (pooling(x, lengths, *weights, leak, impl=impl) for impl in ("fused", "torch"))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(gradients(found, x, *weights), gradients(expected, x, *weights), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("leak", "corner"), [("printed", 0.01), ("coded", 0.0)])
@pytest.mark.parametrize("rows", ROWS)
def test_at_the_leaks_corner_the_gradient_is_torchs(monkeypatch, rows, leak, corner):
    monkeypatch.setattr(pooling_tiles, "ROWS", rows)
    x, weights = sequences(), layer()
    with torch.no_grad():
        weights[0].zero_(), weights[1].fill_(corner)
    found = pooling(x, LENGTHS, *weights, leak, impl="fused")
    expected = pooling(x, LENGTHS, *weights, leak, impl="torch")
    for ours, theirs in zip(gradients(found, *weights), gradients(expected, *weights), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", ROWS)
def test_what_stands_in_the_padding_is_not_read(monkeypatch, rows):
    monkeypatch.setattr(pooling_tiles, "ROWS", rows)
    x, weights = sequences(), layer()
    expected = pooling(x, LENGTHS, *weights, "printed", impl="fused")
    with torch.no_grad():
        for row, n in zip(x, LENGTHS, strict=True):
            row[n:] = torch.nan
    found = pooling(x, LENGTHS, *weights, "printed", impl="fused")
    assert torch.equal(found, expected)
    g_x, *others = gradients(found, x, *weights)
    assert all(one.isfinite().all() for one in others)
    assert all(not row[n:].any() for row, n in zip(g_x, LENGTHS, strict=True))


@pytest.mark.parametrize("rows", ROWS)
def test_tiles_hold_each_real_step_once_and_none_is_padding_alone(monkeypatch, rows):
    monkeypatch.setattr(pooling_tiles, "ROWS", rows)
    x, seen = sequences().detach(), torch.zeros(5, 7)
    for some, steps, tile in tiles(x, LENGTHS, x.dtype):
        real = tile[-1]
        assert real.any()
        seen[some, steps] += real
        assert torch.equal(tile[:-1].permute(1, 2, 0), x[some, steps] * real[..., None])
    assert torch.equal(seen, (torch.arange(7) < LENGTHS[:, None]).float())


class Largest(TorchDispatchMode):
    """The most numbers that any operation's result held, views apart."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for one in tree_leaves(found):
            if isinstance(one, torch.Tensor) and not one._is_view():
                self.numbers = max(self.numbers, one.numel())
        return found


@pytest.mark.parametrize(("kind", "leak"), SWITCHES)
def test_memory_does_not_grow_with_time(kind, leak):
    def cost(T: int) -> tuple[int, int]:
        x, weights, saved = torch.randn(2, T, 3), layer(kind, dtype=torch.float32), []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
                saved.append(tensor.numel())
            return tensor

        with Largest() as largest, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            c = pooling(x, torch.tensor([T, T // 2]), *weights, leak, impl="fused")
            gradients(c, *weights)
        return sum(saved), largest.numbers

    saved, largest = cost(5_000)
    assert (saved, largest) == cost(20_000)
    assert saved < 300 and largest < 2 * 5_000 * 6  # fewer numbers than there are states


@pytest.mark.parametrize(("kind", "leak"), SWITCHES)
def test_gradients_have_gradients(kind, leak):
    """Also where the input was made from the weights, which must not count twice."""
    x, weights = sequences(), layer(kind)
    some, second = weights[3] if kind == "attention" else weights[1], []
    for impl in ("fused", "torch"):
        c = pooling(x * some.sum(), LENGTHS, *weights, leak, impl=impl)
        first = gradients(c, x, *weights, again=True)
        second.append([*first, *gradients(torch.cat([g.flatten() for g in first]).square(), x, *weights)])
    for ours, theirs in zip(*second, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_a_second_backward_pass_finds_what_the_first_found():
    x, weights = sequences(), layer()
    loss = pooling(x, LENGTHS, *weights, "coded", impl="fused").square().sum()
    once = torch.autograd.grad(loss, [x, *weights], retain_graph=True)
    assert all(map(torch.equal, once, torch.autograd.grad(loss, [x, *weights])))


def test_transforms_of_torch_go_by_the_plain_way():
    x, weights = sequences(), [one.detach() for one in layer()]

    def context(x: torch.Tensor) -> torch.Tensor:
        return pooling(x, LENGTHS, *weights, "coded")

    expected = torch.autograd.functional.jacobian(context, x)
    torch.testing.assert_close(torch.func.jacrev(context)(x.detach()), expected)
    _, tangent = torch.func.jvp(context, (x.detach(),), (torch.ones_like(x),))
    torch.testing.assert_close(tangent, expected.sum((2, 3, 4)))


def test_neither_strides_nor_the_absence_of_gradients_matter():
    x, weights = sequences(), layer()
    expected = pooling(x, LENGTHS, *weights, "printed", impl="naive")
    strided = x.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0)
    with torch.no_grad():
        found = pooling(strided, LENGTHS, *weights, "printed", impl="fused")
    torch.testing.assert_close(found, expected.detach(), rtol=0, atol=1e-12)
    assert not found.requires_grad
    only_scores = pooling(strided, LENGTHS, weights[0].detach(), weights[1].detach(), *weights[2:], "printed")
    for ours, theirs in zip(gradients(only_scores, *weights[2:]), gradients(expected, *weights[2:]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_autocast_and_half_precision_change_the_dtype_and_little_else():
    x, weights = sequences(3000).float(), [one.float() for one in layer()]
    lengths = torch.full((5,), 3000)
    expected = pooling(x, lengths, *weights, "printed", impl="fused")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = pooling(x, lengths, *weights, "printed", impl="fused")
        assert found.dtype == pooling(x, lengths, *weights, "printed", impl="torch").dtype == torch.bfloat16
        grads = gradients(found, *weights, keep=True)
    assert all(map(torch.equal, grads, gradients(found, *weights)))  # a backward pass outside of it does the same
    torch.testing.assert_close(found.float(), expected, rtol=0.01, atol=0.01)
    for ours, theirs in zip(grads, gradients(expected, *weights), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)
    half = [one.bfloat16() for one in weights]
    assert pooling(x.bfloat16(), lengths, *half, "printed", impl="fused").dtype == torch.bfloat16
