"""Second derivatives, batched gradients and autocast for functions with a custom backward pass."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def needs_torch(gradients: Sequence[Tensor | None]) -> bool:
    """Whether a backward pass must use torch's own operations.

    This is so if the gradients are differentiated again, and if each stands for a whole batch of gradients, as in
    `torch.autograd.grad(is_grads_batched=True)`: such a tensor has no memory that C++ could read.
    """
    kinds = torch._C._functorch.is_legacy_batchedtensor, torch._C._functorch.is_functorch_wrapped_tensor
    return torch.is_grad_enabled() or any(one is not None and kind(one) for one in gradients for kind in kinds)


def first_derivatives_only(name: str, gradients: Sequence[Tensor | None]) -> None:
    """Raise a RuntimeError if a backward pass must use torch's own operations, and this operation cannot."""
    if needs_torch(gradients):
        raise RuntimeError(f'{name}: this derivative needs `with implementation("torch"):` around the forward pass')


def torch_gradients(
    function: Callable[..., Tensor], inputs: Sequence[Any], gradients: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the inputs by torch's own backward pass. They can be differentiated again.

    Args:
        function: the plain version; it takes the same inputs.
        inputs: tensors and other arguments.
        gradients: of the one output.
    """
    with torch.enable_grad():
        # new views: one input may have been computed from another one, outside the function
        inputs = [one.view_as(one) if isinstance(one, Tensor) and one.requires_grad else one for one in inputs]
        output = function(*inputs)
    wanted = [one for one in inputs if isinstance(one, Tensor) and one.requires_grad]
    found = torch.autograd.grad(output, wanted, gradients[0], create_graph=torch.is_grad_enabled(), allow_unused=True)
    each = iter(found)
    return tuple(next(each) if isinstance(one, Tensor) and one.requires_grad else None for one in inputs)


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
