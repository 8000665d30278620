"""Feed-forward attention's pooling in plain torch: it stores the states of all steps.

Raffel & Ellis (2015), Eq. 1-2 and §2.1.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.masks import masked_softmax
from rtx.nn.padding import real_positions

FLOOR = 0.01
SMALLEST = 0.1  # below the sum of exp(e_t) of one step, which is at least 1/e, and above that of none
LEAKS: dict[str, Callable[[Tensor], Tensor]] = {
    "printed": lambda x: x.clamp(min=FLOOR),  # max(x, .01), as in the paper
    "coded": lambda x: F.leaky_relu(x, FLOOR),  # max(x, .01 x), as in the authors' code
}


def torch_pooling(
    x: Float[Tensor, "B T F"],
    lengths: Int[Tensor, " B"],
    weight: Tensor,
    bias: Tensor,
    score: Tensor | None,
    shift: Tensor | None,
    leak: str,
) -> Float[Tensor, "B D"]:
    """Return the context c = Σ α_t h_t."""
    real = real_positions(lengths, x.shape[1])
    # h_t = LReLU(W_xh x_t + b_xh). The padding becomes zero first: a NaN there would survive a weight of zero.
    h = LEAKS[leak](F.linear(torch.where(real[..., None], x, 0), weight, bias))
    # a(h_t) = tanh(w_hc · h_t + b_hc), or zeros for the mean: the softmax of any constant is uniform
    e = h.new_zeros(h.shape[:-1]) if score is None else torch.tanh(F.linear(h, score, shift)).squeeze(-1)
    # Eq. (1), or Eq. (2) for the mean: c = Σ α_t h_t
    return (masked_softmax(e, real).to(h.dtype)[:, None] @ h).squeeze(1)
