"""Cross-entropy in parts of rows, held to torch's, and to -log softmax written out."""

import math

import pytest
import torch

from rtx.nn.kernels import cross_entropy as module
from rtx.nn.kernels.cross_entropy import FEW, cross_entropy

IGNORED = -100


def drawn(rows: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    logits = 3 * torch.randn(rows, classes, dtype=torch.float64)
    targets = torch.randint(classes, (rows,))
    targets[::4] = IGNORED
    return logits.requires_grad_(), targets


@pytest.mark.parametrize(("rows", "classes", "together"), [(7, 5, 10), (7, 5, 1), (9, 3, 2**18), (1, 1, 4), (0, 5, 10)])
def test_the_sum_and_its_gradient_are_those_written_out(monkeypatch, rows, classes, together):
    monkeypatch.setattr(module, "TOGETHER", together)
    logits, targets = drawn(rows, classes)
    found = cross_entropy(logits, targets, IGNORED, impl="fused")
    (gradient,) = torch.autograd.grad(0.7 * found, logits)
    expected, softmax = 0.0, torch.zeros(rows, classes, dtype=torch.float64)
    for n, target in enumerate(targets.tolist()):
        if target != IGNORED:
            powers = [math.exp(value) for value in logits[n].tolist()]
            expected -= math.log(powers[target] / sum(powers))
            softmax[n] = torch.tensor(powers, dtype=torch.float64) / sum(powers)
            softmax[n, target] -= 1
    assert found.item() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(gradient, 0.7 * softmax, rtol=0, atol=1e-12)


def test_logits_out_of_all_bounds_are_torchs():
    logits, targets = drawn(6, 4)
    logits.data[1] = torch.tensor([-math.inf, 500.0, -500.0, 0.0])
    targets[1] = 1
    by = {
        impl: (loss := cross_entropy(logits, targets, IGNORED, impl=impl), *torch.autograd.grad(loss, logits))
        for impl in ("fused", "torch")
    }
    torch.testing.assert_close(by["fused"], by["torch"])
    assert by["fused"][0].isfinite()


def test_its_gradient_has_a_gradient():
    logits, targets = drawn(4, 3)
    assert torch.autograd.gradgradcheck(lambda x: cross_entropy(x, targets, IGNORED, impl="fused"), logits)


@pytest.mark.parametrize("wrong", [5, -1])
def test_a_target_that_is_no_class_is_refused(wrong):
    logits, targets = drawn(7, 5)
    targets[2] = wrong
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        cross_entropy(logits, targets, IGNORED, impl="fused")


def test_no_second_array_as_large_as_the_logits_is_kept():
    logits, targets = drawn(64, 1000)
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        cross_entropy(logits, targets, IGNORED, impl="fused")
    assert sum(one.numel() for one in kept if one.data_ptr() != logits.data_ptr()) < 6 * len(logits)


def test_few_logits_are_left_to_torch():
    logits, targets = torch.zeros(FEW // 8, 8), torch.zeros(FEW // 8, dtype=torch.long)
    assert cross_entropy.choose(logits, targets, IGNORED) == "fused"
    assert cross_entropy.choose(logits[:-1], targets[:-1], IGNORED) == "torch"
