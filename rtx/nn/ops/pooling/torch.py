"""Feed-forward attention's pooling in plain torch: it stores the states of all steps.

Raffel & Ellis (2015), Eq. 1-2 and §2.1.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.padding import real_positions

FLOOR = 0.01
LEAKS: dict[str, Callable[[Tensor], Tensor]] = {
    "printed": lambda x: x.clamp(min=FLOOR),  # max(x, .01), as in the paper
    "coded": lambda x: F.leaky_relu(x, FLOOR),  # max(x, .01 x), as in the authors' code
}


def states(
    x: Float[Tensor, "B T F"], real: Bool[Tensor, "B T"], weight: Float[Tensor, "D F"], bias: Tensor, leak: str
) -> Float[Tensor, "B T D"]:
    """Return h_t = LReLU(W_xh x_t + b_xh)."""
    # the padding becomes zero first: a NaN there would survive a weight of zero
    return LEAKS[leak](F.linear(torch.where(real[..., None], x, 0), weight, bias))


def scores(h: Float[Tensor, "*B D"], score: Float[Tensor, "1 D"] | None, shift: Tensor | None) -> Float[Tensor, "*B"]:
    """Return a(h_t) = tanh(w_hc · h_t + b_hc), or zeros for the mean: the softmax of any constant is uniform."""
    return h.new_zeros(h.shape[:-1]) if score is None else torch.tanh(F.linear(h, score, shift)).squeeze(-1)


def shares(
    h: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"], score: Tensor | None, shift: Tensor | None
) -> Float[Tensor, "B T"]:
    """Return α_t, the softmax of the scores over the real steps."""
    return scores(h, score, shift).masked_fill(~real, -torch.inf).softmax(-1).to(h.dtype)


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
    h = states(x, real, weight, bias, leak)
    # Eq. (1), or Eq. (2) for the mean
    return (shares(h, real, score, shift)[:, None] @ h).squeeze(1)
