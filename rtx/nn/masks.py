"""Masks: True means "may attend". A query that may see nothing gets zeros, and its weights are zeros, as in torch.

A hidden position has weight 0. But 0 · NaN is NaN, so padding must hold finite numbers: where it could hold anything,
it is set to zero first.
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
