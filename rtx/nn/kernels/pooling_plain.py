"""Feed-forward attention's context with the states of all steps as a tensor, by torch's own gradients.

Raffel & Ellis (2015), Eq. 1-2 and §2.1.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.padding import real_positions

FLOOR = 0.01

LEAKS: dict[str, Callable[[Tensor], Tensor]] = {
    "printed": lambda x: x.clamp(min=FLOOR),
    "coded": lambda x: F.leaky_relu(x, FLOOR),
}


def states(
    x: Float[Tensor, "B T F"], real: Bool[Tensor, "B T"], weight: Float[Tensor, "D F"], bias: Tensor, leak: str
) -> Float[Tensor, "B T D"]:
    """h_t = LReLU(W_xh x_t + b_xh)."""
    # zeros for the padding first: a NaN in it would outlive a weight of zero
    return LEAKS[leak](F.linear(torch.where(real[..., None], x, 0), weight, bias))


def scores(h: Float[Tensor, "*B D"], score: Float[Tensor, "1 D"] | None, shift: Tensor | None) -> Float[Tensor, "*B"]:
    """a(h_t) = tanh(w_hc · h_t + b_hc); equal ones for the mean, which is the softmax of any constant."""
    return h.new_zeros(h.shape[:-1]) if score is None else torch.tanh(F.linear(h, score, shift)).squeeze(-1)


def shares(
    h: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"], score: Tensor | None, shift: Tensor | None
) -> Float[Tensor, "B T"]:
    """α_t, the softmax over the real steps of their scores."""
    return scores(h, score, shift).masked_fill(~real, -torch.inf).softmax(-1).to(h.dtype)


def plain_pooling(
    x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Tensor:
    """c = Σ α_t h_t, of the arguments that `pooling` takes."""
    real = real_positions(lengths, x.shape[1])
    h = states(x, real, weight, bias, leak)
    # Eq. (1) or (2): c = Σ α_t h_t
    return (shares(h, real, score, shift)[:, None] @ h).squeeze(1)
