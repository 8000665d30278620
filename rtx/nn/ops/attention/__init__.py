"""Attention with dropout on the weights: causal, where each position sees itself and the earlier ones, or with a mask.

Without dropout torch's own function is fastest. With dropout, torch keeps the (T, T) weights on a CPU. The other two
implementations of causal attention draw the same mask again in the backward pass instead. Only "torch" has second
derivatives and forward-mode derivatives. `rtx.nn.masks` says what hidden positions and empty rows do.
"""

from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.functional import scaled_dot_product_attention as sdpa

from rtx.nn.ops.attention.blocks import blocked_attention
from rtx.nn.ops.attention.native import native_attention
from rtx.nn.ops.attention.torch import torch_attention
from rtx.nn.ops.conditions import no_native_code, not_on_cpu, other_sizes
from rtx.nn.ops.dispatch import Implementation, Operation


def _not_blocked(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> str | None:
    return _rate_too_high(dropout) or not_on_cpu(q, k, v) or _other_sizes(q, k, v)


def _not_native(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> str | None:
    return _rate_too_high(dropout) or no_native_code(q, k, v) or _other_sizes(q, k, v)


def _rate_too_high(dropout: float) -> str | None:
    return f"its masks express rates up to 255/256, and this is {dropout}" if dropout > 255 / 256 else None


def _other_sizes(q: Tensor, k: Tensor, v: Tensor) -> str | None:
    return other_sizes(q=(q, (None,) * 4), k=(k, q.shape), v=(v, q.shape))


def _forward_mode(*_: object) -> str | None:
    return "torch's own function has no forward-mode derivative" if forward_ad._current_level >= 0 else None


def _no_dropout(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> str | None:
    return None if dropout else "without dropout torch's own function is faster"


causal_attention = Operation(
    "causal_attention",
    {
        "native": Implementation(native_attention, _not_native, _no_dropout),
        "blocks": Implementation(blocked_attention, _not_blocked, _no_dropout),
        "sdpa": Implementation(lambda q, k, v, dropout: sdpa(q, k, v, None, dropout, True), _forward_mode),
        "torch": Implementation(lambda q, k, v, dropout: torch_attention(q, k, v, None, dropout, True)),
    },
)
"""`causal_attention(q, k, v, dropout)`: queries, keys and values (B, H, T, K) to (B, H, T, K)."""

masked_attention = Operation(
    "masked_attention", {"sdpa": Implementation(sdpa, _forward_mode), "torch": Implementation(torch_attention)}
)
"""`masked_attention(q, k, v, mask, dropout)`: True where a query may see a key. Without a mask, each sees all keys."""
