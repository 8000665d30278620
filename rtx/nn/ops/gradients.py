"""What a function with a custom backward pass refuses, and how it works under autocast."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def first_derivatives_only(name: str, gradients: Sequence[Tensor | None]) -> None:
    """Raise a RuntimeError if a custom backward pass cannot compute what is asked for.

    It cannot if the gradients are differentiated again, nor if each stands for a whole batch of gradients, as in
    `torch.autograd.grad(is_grads_batched=True)`: such a tensor has no memory that C++ could read.
    """
    kinds = torch._C._functorch.is_legacy_batchedtensor, torch._C._functorch.is_functorch_wrapped_tensor
    if torch.is_grad_enabled() or any(one is not None and kind(one) for one in gradients for kind in kinds):
        raise RuntimeError(f'{name}: this derivative needs `with implementation("torch"):` around the forward pass')


def autocast_inputs(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors in autocast's dtype if autocast is on. Float64 stays, as for a matrix product."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(x if x.dtype == torch.float64 else x.to(dtype) for x in tensors)


def without_autocast(function: Callable[P, R]) -> Callable[P, R]:
    """Switch autocast off inside `function`: its inputs already have the right dtype."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        kind = next(x for x in args if isinstance(x, Tensor)).device.type
        with torch.autocast(kind, enabled=False):
            return function(*args, **kwargs)

    return inside
