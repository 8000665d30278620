"""Cross-entropy in parts of rows, held to torch's, and to -log softmax written out."""

import math

import pytest
import torch

from rtx.nn.kernels import cross_entropy as module
from rtx.nn.kernels.cross_entropy import FEW, cross_entropy
from rtx.nn.kernels.native import build
from rtx.nn.kernels.native import cross_entropy as native

IGNORED = -100
CANNOT = build.obstacle()
COMPILED = pytest.mark.skipif(CANNOT is not None, reason=f"no kernels in C++: {CANNOT}")
IMPLS = pytest.mark.parametrize("impl", ["fused", pytest.param("native", marks=COMPILED)])


def drawn(rows: int, classes: int, impl: str = "fused") -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    logits = 3 * torch.randn(rows, classes, dtype=torch.float32 if impl == "native" else torch.float64)
    targets = torch.randint(classes, (rows,))
    targets[::4] = IGNORED
    return logits.requires_grad_(), targets


@pytest.mark.parametrize(
    ("rows", "classes", "together"), [(7, 5, 10), (9, 40, 1), (9, 16, 2**18), (1, 1, 4), (0, 5, 10)]
)
@IMPLS
def test_the_sum_and_its_gradient_are_those_written_out(monkeypatch, rows, classes, together, impl):
    monkeypatch.setattr(module, "TOGETHER", together)
    logits, targets = drawn(rows, classes, impl)
    found = cross_entropy(logits, targets, IGNORED, impl=impl)
    (gradient,) = torch.autograd.grad(0.7 * found, logits)
    expected, softmax = 0.0, torch.zeros(rows, classes, dtype=torch.float64)
    for n, target in enumerate(targets.tolist()):
        if target != IGNORED:
            powers = [math.exp(value) for value in logits[n].tolist()]
            expected -= math.log(powers[target] / sum(powers))
            softmax[n] = torch.tensor(powers, dtype=torch.float64) / sum(powers)
            softmax[n, target] -= 1
    close = {"rtol": 0, "atol": 1e-12 if impl == "fused" else 1e-6}
    torch.testing.assert_close(
        found.double() / max(1, rows), torch.tensor(expected / max(1, rows), dtype=torch.float64), **close
    )
    torch.testing.assert_close(gradient.double(), 0.7 * softmax, **close)


@pytest.mark.parametrize("odd", [-math.inf, 500.0, math.nan])
@IMPLS
def test_logits_out_of_all_bounds_are_torchs(impl, odd):
    logits, targets = drawn(6, 20, impl)
    logits.data[1] = -700.0  # a row that is far below
    logits.data[2, [3, 18]] = odd
    targets[1:3] = 1
    found, expected = (
        (loss := cross_entropy(logits, targets, IGNORED, impl=how), *torch.autograd.grad(loss, logits))
        for how in (impl, "torch")
    )
    torch.testing.assert_close(found, expected, equal_nan=True)
    assert found[0].isnan() == math.isnan(odd)


@COMPILED
def test_rows_of_nothing_but_infinity_have_no_number():
    logits = torch.full((2, 20), -math.inf)
    assert cross_entropy(logits, torch.tensor([0, 1]), IGNORED, impl="native").isnan()


def test_its_gradient_has_a_gradient():
    logits, targets = drawn(4, 3)
    assert torch.autograd.gradgradcheck(lambda x: cross_entropy(x, targets, IGNORED, impl="fused"), logits)


@COMPILED
def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(native, "SMALL", 1)
    logits, targets = drawn(300, 70, "native")
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            loss = cross_entropy(logits, targets, IGNORED, impl="native")
            found.append((loss.detach(), *torch.autograd.grad(loss, logits)))
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("wrong", [5, -1])
@IMPLS
def test_a_target_that_is_no_class_is_refused(wrong, impl):
    logits, targets = drawn(7, 5, impl)
    targets[2] = wrong
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        cross_entropy(logits, targets, IGNORED, impl=impl)


@IMPLS
def test_no_second_array_as_large_as_the_logits_is_kept(impl):
    logits, targets = drawn(64, 1000, impl)
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        cross_entropy(logits, targets, IGNORED, impl=impl)
    assert sum(one.numel() for one in kept if one.data_ptr() != logits.data_ptr()) < 6 * len(logits)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_left_to_torch_which_sums_it_in_single_under_autocast(dtype):
    torch.manual_seed(0)
    logits, targets = torch.randn(640, 2000).to(dtype), torch.randint(2000, (640,))
    assert cross_entropy.choose(logits, targets, IGNORED) == "torch"
    with pytest.raises(ValueError, match="cannot be 'fused' here: it sums in the precision of the logits"):
        cross_entropy(logits, targets, IGNORED, impl="fused")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = cross_entropy(logits, targets, IGNORED)
    exact = torch.nn.functional.cross_entropy(logits.double(), targets, reduction="sum")
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=0)


@COMPILED
def test_few_logits_are_left_to_torch():
    logits, targets = torch.zeros(FEW // 8, 8), torch.zeros(FEW // 8, dtype=torch.long)
    assert cross_entropy.choose(logits, targets, IGNORED) == "native"
    assert cross_entropy.choose(logits.double(), targets, IGNORED) == "fused"
    assert cross_entropy.choose(logits[:-1], targets[:-1], IGNORED) == "torch"
