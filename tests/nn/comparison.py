"""Compare outputs, gradients and memory of two versions of one function."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rtx.nn.ops import build

OBSTACLE = build.obstacle()
COMPILED = pytest.mark.skipif(OBSTACLE is not None, reason=f"no C++ library: {OBSTACLE}")
NATIVE = pytest.param("native", marks=COMPILED)


def outputs_and_gradients(y: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return y and the gradients of the inputs, for a loss that gives each number of y another weight."""
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype, device=y.device).view_as(y)
    return [y, *torch.autograd.grad((y * weight).sum(), inputs, materialize_grads=True)]


def second_gradients(y: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients of the sum of all squared gradients."""
    first = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
    return list(torch.autograd.grad(sum(one.square().sum() for one in first), inputs, materialize_grads=True))


def leaves(inputs: Iterable[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Return copies of another dtype that need gradients. The strides stay."""
    return [x.detach().to(dtype, copy=True).requires_grad_() for x in inputs]


def assert_near(found: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float) -> None:
    """Compare tensor by tensor. The tolerance is relative to the largest number of a tensor, or to 1."""
    for one, wanted in zip(found, expected, strict=True):
        scale = max(1.0, wanted.abs().max().item()) if wanted.numel() else 1.0
        torch.testing.assert_close(one.double() / scale, wanted.double() / scale, rtol=0, atol=tolerance)


def stream(layer: Any, x: Tensor, state: Any = None) -> Tensor:
    """Return the outputs for x (B, T, D) if the layer reads one position at a time."""
    outputs = []
    for x_t in x.split(1, 1):
        y, state = layer.read(x_t, state)
        outputs.append(y)
    return torch.cat(outputs, 1)


class Largest(TorchDispatchMode):
    """Record how many numbers the largest result of an operation has."""

    numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        sizes = [one.numel() for one in tree_leaves(found) if isinstance(one, Tensor) and not one._is_view()]
        self.numbers = max(self.numbers, *sizes, 0)
        return found


def stored_bytes(run: Callable[[], Tensor]) -> int:
    """Return how much memory autograd stores for the backward pass. Memory that is stored twice counts once."""
    pieces = {}

    def pack(x: Tensor) -> Tensor:
        pieces[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with saved_tensors_hooks(pack, lambda x: x):
        y = run()
    assert y.requires_grad  # so the stored tensors are alive, and no two of them had the same address
    return sum(pieces.values())
