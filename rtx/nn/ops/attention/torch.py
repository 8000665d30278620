"""Causal attention by torch's own function."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def torch_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"], dropout: float
) -> Float[Tensor, "B H T K"]:
    """Compute attention with torch's function. Without dropout it has no second derivative on a CPU."""
    return F.scaled_dot_product_attention(q, k, v, None, dropout, is_causal=True)
