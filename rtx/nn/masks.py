"""Masks: True means "may attend". Two rules hold for every attention and pooling here, however it is computed.

1. **What is hidden from a query changes nothing in its output**, whatever it holds. A hidden value has weight 0, but
   0 · NaN is NaN. So a position that is not finite becomes zero, and the queries that may see it get NaN. Therefore
   `forward` shows a NaN at the same positions as `step`, which has not read later ones yet. This is about outputs:
   the gradient of a weight is a sum over all positions, so one NaN is in all of it.
2. **A query that may see nothing gets zeros**, and its weights are zeros, as in torch's own attention.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rtx.nn.validate import check_positive


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Bool[Tensor, "T S"]:
    """Return a mask (T, S) that is True where the key is not later than the query.

    Args:
        queries: T. The queries belong to the last T of the S positions.
        keys: S, at least T; by default T.
        device: where the mask is created.
    """
    check_positive("queries", queries)
    S = queries if keys is None else check_positive("keys", keys)
    if queries > S:
        raise ValueError(f"keys: expected at least {queries}, one for each query, got {S}")
    return torch.ones(queries, S, dtype=torch.bool, device=device).tril(S - queries)


def masked_softmax(scores: Float[Tensor, "*rows S"], mask: Bool[Tensor, "*shown S"]) -> Float[Tensor, "*rows S"]:
    """Return the softmax over the positions that each row may see, and zeros elsewhere."""
    # -inf, because a large negative number such as -1e9 does not fit in every dtype
    # a row that may see nothing keeps its scores: the softmax of -inf alone is NaN, at which anomaly mode stops
    kept = mask | ~mask.any(-1, keepdim=True)
    return scores.masked_fill(~kept, -math.inf).softmax(-1).masked_fill(~mask, 0.0)


def contain(
    k: Float[Tensor, "B H S K"], v: Float[Tensor, "B H S K"], mask: Bool[Tensor, "*heads T S"] | None
) -> tuple[Float[Tensor, "B H S K"], Float[Tensor, "B H S K"], Bool[Tensor, "B _ T 1"]]:
    """Return keys and values with zeros where a position is not finite, and True for the queries that may see one.

    Without a mask, there is a query at each of the S positions, and it may see those up to its own.
    """
    # a sum is much faster than asking each number; one that overflows counts as not finite, too
    wide = torch.promote_types(k.dtype, torch.float32)
    bad = ~(k.detach().sum((1, 3), dtype=wide) + v.detach().sum((1, 3), dtype=wide)).isfinite()[:, None]  # (B, 1, S)
    k, v = torch.where(bad[..., None], 0.0, k), torch.where(bad[..., None], 0.0, v)
    seen = bad.cumsum(-1) > 0 if mask is None else (mask & bad[..., None, :]).any(-1)
    return k, v, seen[..., None]
