"""Attention by torch's own function: the fastest of its versions, or the plain one."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from rtx.nn.ops.conditions import no_custom_gradient
from rtx.nn.ops.gradients import first_derivatives_only


def sdpa(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "*heads T S"] | None,
    dropout: float,
    causal: bool = False,
) -> Float[Tensor, "B H T K"]:
    """Attend to what the mask shows, by default to all, or to the past. Most fast versions have first derivatives."""
    out = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
    node = None if torch.compiler.is_compiling() or no_custom_gradient(out) else out.grad_fn
    if node is not None and node.name().startswith("ScaledDotProduct"):
        node.register_hook(_refuse_second_derivatives)
    return out


def torch_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool = False
) -> Float[Tensor, "B H T K"]:
    """Do the same with all weights, (T, S), as a tensor. This version has derivatives of any order."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)


def _refuse_second_derivatives(*_: object) -> None:
    if torch.is_grad_enabled():
        first_derivatives_only("attention", ())
