"""Causal attention: each position attends to itself and to all earlier ones, with dropout on the weights.

Without dropout torch's own function is fastest. With dropout, torch keeps the (T, T) weights on a CPU. The other two
implementations draw the same mask again in the backward pass instead. They have no second derivatives.
"""

from torch import Tensor

from rtx.nn.ops.attention.fused import fused_attention
from rtx.nn.ops.attention.native import native_attention
from rtx.nn.ops.attention.torch import torch_attention
from rtx.nn.ops.conditions import no_native_code, not_on_cpu
from rtx.nn.ops.dispatch import Implementation, Operation


def _not_fused(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> str | None:
    return _rate_too_high(dropout) or not_on_cpu(q, k, v) or _different_shapes(q, k, v)


def _not_native(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> str | None:
    return _rate_too_high(dropout) or no_native_code(q, k, v) or _different_shapes(q, k, v)


def _rate_too_high(dropout: float) -> str | None:
    return f"its masks express rates up to 255/256, and this is {dropout}" if dropout > 255 / 256 else None


def _different_shapes(q: Tensor, k: Tensor, v: Tensor) -> str | None:
    return None if q.shape == k.shape == v.shape else "it needs queries, keys and values of the same shape"


def _no_dropout(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> str | None:
    return None if dropout else "without dropout torch's own function is faster"


causal_attention = Operation(
    "causal_attention",
    {
        "native": Implementation(native_attention, _not_native, _no_dropout),
        "fused": Implementation(fused_attention, _not_fused, _no_dropout),
        "torch": Implementation(torch_attention),
    },
)
"""`causal_attention(q, k, v, dropout)`: queries, keys and values (B, H, T, K) to (B, H, T, K)."""
