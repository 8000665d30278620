"""Feed-forward attention as loops written straight from the equations, one sequence and one step at a time.

Raffel & Ellis (2015), Eq. 1-2 and §2.1.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


def feed_forward_attention(
    x: Float[Tensor, "T F"], parameters: dict[str, Tensor], pooling: str = "attention", leak: str = "printed"
) -> Float[Tensor, " K"]:
    """The output for one sequence without padding.

    Args:
        x: the sequence.
        parameters: the state dict of `rtx.models.FeedForwardAttention`.
        pooling: "attention" or "mean".
        leak: "printed" or "coded".
    """

    p = parameters
    score, shift = (p["score.weight"], p["score.bias"]) if pooling == "attention" else (None, None)
    c = context(x, p["hidden.weight"], p["hidden.bias"], score, shift, leak)
    s = lrelu(p["context.weight"] @ c + p["context.bias"], leak)
    return lrelu(p["output.weight"] @ s + p["output.bias"], leak)


def context(
    x: Float[Tensor, "T F"], weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Float[Tensor, " D"]:
    """The weighted average of one sequence's states; the mean if there is no score."""
    h = [lrelu(weight @ x_t + bias, leak) for x_t in x]
    if score is None or shift is None:
        return sum(h[1:], h[0]) / len(h)  # Eq. (2)
    e = [torch.exp(torch.tanh(score @ h_t + shift)) for h_t in h]
    alpha = [e_t / sum(e[1:], e[0]) for e_t in e]
    weighted = [a * h_t for a, h_t in zip(alpha, h, strict=True)]
    return sum(weighted[1:], weighted[0])  # Eq. (1)


def contexts(x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"], *layer: Any) -> Float[Tensor, "B D"]:
    """Each sequence's context without its padding; `layer` as in `context`."""
    return torch.stack([context(row[:n], *layer) for row, n in zip(x, lengths, strict=True)])


def lrelu(v: Float[Tensor, " N"], leak: str) -> Float[Tensor, " N"]:
    """max(v, .01) as printed, max(v, .01 v) as coded."""
    return torch.stack([torch.max(n, n * 0 + 0.01 if leak == "printed" else 0.01 * n) for n in v])
