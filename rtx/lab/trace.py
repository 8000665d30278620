"""A model at work: what attends to what, and which input reaches which output. Models are left as they are."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn import MultiHeadAttention


def attention_weights(model: nn.Module, x: Tensor) -> list[Float[Tensor, "B H T T"]]:
    """The attention weights of every layer, bottom to top, for the input `x`; no layers, an empty list."""
    found: list[Tensor] = []
    layers = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    hooks = [m.register_forward_pre_hook(lambda m, args: found.append(m.weights(*args))) for m in layers]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def reach(model: nn.Module, x: Float[Tensor, "1 T D"]) -> Float[Tensor, "T T"]:
    """How much each output moves when each input moves: the Frobenius norm of ∂y_t / ∂x_s at row t, column s.

    Exact, by one backward pass per output number; meant for short sequences. A causal model's upper right is zero.

    Raises:
        ValueError: if `x` holds more than one sequence.
    """
    if x.ndim != 3 or len(x) != 1:
        raise ValueError(f"x: expected one sequence (1, time, width), got {tuple(x.shape)}")
    x = x.detach().requires_grad_()
    y = model(x)[0]  # (T, D)
    rows = []
    for output in y:
        gradients = [torch.autograd.grad(number, x, retain_graph=True)[0][0] for number in output]  # D times (T, D)
        rows.append(torch.stack(gradients).square().sum((0, 2)).sqrt())
    return torch.stack(rows)
