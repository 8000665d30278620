"""Gradients of gradients, which a hand-written backward pass does not give by itself."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def gradients_again(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Sequence[Any], gradients: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs by torch's own backward pass through `function`, to be differentiated once more.

    Args:
        function: the plain one, of the same inputs.
        inputs: tensors, and what else it takes.
        gradients: of its outputs, None for one that was not used.
    """
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
    each = iter(torch.autograd.grad(outputs, wanted, weights, create_graph=True, allow_unused=True))
    return tuple(next(each) if isinstance(one, Tensor) and one.requires_grad else None for one in inputs)
