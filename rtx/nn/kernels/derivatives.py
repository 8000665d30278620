"""What a hand-written backward pass does not give by itself: gradients of gradients, and of many outputs at once."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def only_by_torch(gradients: Sequence[Tensor | None]) -> bool:
    """Whether a backward pass must be torch's own, as `gradients_again` makes it.

    So it is where the gradients are to have gradients; and where each stands for many and has no memory to read, as
    `torch.autograd.grad` gives them with `is_grads_batched=True` or within `torch.func.vmap`, which vectorised
    Jacobians are made by.
    """
    kinds = torch._C._functorch.is_legacy_batchedtensor, torch._C._functorch.is_functorch_wrapped_tensor
    return torch.is_grad_enabled() or any(one is not None and kind(one) for one in gradients for kind in kinds)


def gradients_again(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Sequence[Any], gradients: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs by torch's own backward pass through `function`; they may be differentiated again.

    Args:
        function: the plain one, of the same inputs.
        inputs: tensors, and what else it takes.
        gradients: of its outputs, None for one that was not used.
    """
    with torch.enable_grad():
        # new names: the way on which one input was made from another is not the function's
        inputs = [one.view_as(one) if isinstance(one, Tensor) and one.requires_grad else one for one in inputs]
        found = function(*inputs)
    used = [
        (output, gradient)
        for output, gradient in zip((found,) if isinstance(found, Tensor) else found, gradients, strict=True)
        if gradient is not None
    ]
    wanted = [one for one in inputs if isinstance(one, Tensor) and one.requires_grad]
    outputs, weights = zip(*used, strict=True)
    again = torch.is_grad_enabled()
    each = iter(torch.autograd.grad(outputs, wanted, weights, create_graph=again, allow_unused=True))
    return tuple(next(each) if isinstance(one, Tensor) and one.requires_grad else None for one in inputs)
