"""Attention that knows how far away each key is: relative position representations.

Shaw, Uszkoreit & Vaswani (2018), Self-Attention with Relative Position Representations, Eq. 3-5.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.validate import check_positive


class RelativeAttention(MultiHeadAttention):
    """Multi-head attention whose keys and values carry a vector for their distance from the query.

    Distances beyond `clip` share the last vector, so a far key is seen all the same, without its exact distance:
    only the distinction ends at `clip`, not the view. The tables are shared by the heads. Queries are the last T of
    the S positions that have keys, for any T ≤ S.

    Args:
        d_model: D, width of the input and of the output.
        heads: H, must divide D.
        clip: k, the greatest distance with a vector of its own.
        dropout: share of the attention weights set to zero in training.
        two_sided: give later keys vectors of their own, for use with a mask that shows the future. Else the tables
            hold distances 0 … k back, which is all that causal attention can see, and later keys share that of 0.

    Raises:
        ValueError: if a size is below 1, the heads do not divide the width, or dropout is not in [0, 1).
    """

    def __init__(self, d_model: int, heads: int, clip: int = 16, dropout: float = 0.0, two_sided: bool = False) -> None:
        super().__init__(d_model, heads, dropout)
        self.back, self.ahead = check_positive("clip", clip), clip if two_sided else 0
        width = d_model // heads
        self.key_table, self.value_table = (self._table(self.back + self.ahead + 1, width) for _ in range(2))

    @staticmethod
    def _table(rows: int, width: int) -> nn.Parameter:
        bound = 1 / math.sqrt(width)
        return nn.Parameter(torch.empty(rows, width).uniform_(-bound, bound))

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """Eq. 5: a query's match with each key and with its distance; no (T, S, K) table is made."""
        # Eq. (4)-(5): <q, k_s + a^K_{clip(s - t)}> / sqrt(d_k), the second product once per distance
        per_distance = q @ self.key_table.T  # (B, H, T, distances)
        rows = self.rows(q.shape[-2], k.shape[-2]).expand(*q.shape[:-1], -1)
        return (q @ k.transpose(-2, -1) + per_distance.gather(-1, rows)) / math.sqrt(q.shape[-1])

    def gather(self, weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T K"]:
        """Eq. 3: the values, and the vectors of their distances, by the weights."""
        # Eq. (3): Σ_s α_s (v_s + a^V_{clip(s - t)}), the second term once per distance
        rows = self.rows(*weights.shape[-2:]).expand_as(weights)
        per_distance = weights.new_zeros(*weights.shape[:-1], len(self.value_table)).scatter_add(-1, rows, weights)
        return weights @ v + per_distance @ self.value_table

    def rows(self, queries: int, keys: int) -> Int[Tensor, "T S"]:
        """The tables' row for each query and key: row k is distance 0, the rows before it lie back in time."""
        at = torch.arange(keys, device=self.key_table.device)
        distance = at - at[keys - queries :, None]  # (T, S), s - t
        return distance.clamp(-self.back, self.ahead) + self.back
