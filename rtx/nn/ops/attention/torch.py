"""Attention by the plain version of torch's own function."""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def torch_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "*heads T S"] | None,
    dropout: float,
    causal: bool = False,
) -> Float[Tensor, "B H T K"]:
    """Attend to what the mask shows, by default to all, or to the past. It keeps all weights, (T, S), as a tensor."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
