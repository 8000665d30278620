"""Feed-forward attention as loops written straight from the equations, one sequence and one step at a time.

Raffel & Ellis (2015), Eq. 1-2 and §2.1.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def feed_forward_attention(
    x: Float[Tensor, "T F"], parameters: dict[str, Tensor], pooling: str = "attention", leak: str = "printed"
) -> Float[Tensor, "K"]:
    """The output for one sequence without padding.

    Args:
        x: the sequence.
        parameters: the state dict of `rtx.models.FeedForwardAttention`.
        pooling: "attention" or "mean".
        leak: "printed" or "coded".
    """

    def lrelu(v: Tensor) -> Tensor:
        return torch.stack([torch.max(n, n * 0 + 0.01 if leak == "printed" else 0.01 * n) for n in v])

    def layer(name: str, v: Tensor) -> Tensor:
        return parameters[f"{name}.weight"] @ v + parameters[f"{name}.bias"]

    h = [lrelu(layer("hidden", x_t)) for x_t in x]
    if pooling == "mean":
        c = sum(h[1:], h[0]) / len(h)  # Eq. (2)
    else:
        e = [torch.exp(torch.tanh(layer("score", h_t))) for h_t in h]
        alpha = [e_t / sum(e[1:], e[0]) for e_t in e]
        weighted = [a * h_t for a, h_t in zip(alpha, h, strict=True)]
        c = sum(weighted[1:], weighted[0])  # Eq. (1)
    s = lrelu(layer("context", c))
    return lrelu(layer("output", s))
