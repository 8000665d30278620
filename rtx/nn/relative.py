"""Attention that knows how far away each key is: by tables of distances, or by their sinusoids.

Shaw, Uszkoreit & Vaswani (2018), Self-Attention with Relative Position Representations, Eq. 3-5; Dai et al. (2019),
Transformer-XL: Attentive Language Models beyond a Fixed-Length Context, §3.3 and Appendix B.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.initial import uniform_parameter
from rtx.nn.position import sinusoidal_positions
from rtx.nn.validate import check_positive


class RelativeAttention(MultiHeadAttention):
    """Multi-head attention whose keys and values carry a vector for their distance from the query.

    Distances beyond `clip` share the last vector, so a far key is seen all the same, without its exact distance:
    only the distinction ends at `clip`, not the view. The tables are shared by the heads. Queries and keys may be of
    any two lengths, T and S: the last query stands where the last key does.

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
        rows, width = self.back + self.ahead + 1, d_model // heads
        self.key_table, self.value_table = (uniform_parameter(width, rows, width) for _ in range(2))

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
        device = self.key_table.device
        t, s = torch.arange(keys - queries, keys, device=device), torch.arange(keys, device=device)
        distance = s - t[:, None]  # (T, S)
        return distance.clamp(-self.back, self.ahead) + self.back


class XLAttention(MultiHeadAttention):
    """Multi-head attention whose scores know how far away each key is, by four terms with a meaning each.

    Of itself it attends to the whole past; `SegmentMemory` gives it the paper's view. Queries are the last T of the S
    positions that have keys, for any T ≤ S. u and v start as in the authors' code, N(0, 0.02²).

    Args:
        d_model: D, width of the input and of the output.
        heads: H, must divide D.
        dropout: share of the attention weights set to zero in training.

    Raises:
        ValueError: if a size is below 1, the heads do not divide the width, or dropout is not in [0, 1).
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, heads, dropout)
        self.distance = nn.Linear(d_model, d_model, bias=False)  # W_{k,R}
        shape = (heads, 1, d_model // heads)
        self.content_bias = nn.Parameter(torch.randn(shape) * 0.02)  # u
        self.position_bias = nn.Parameter(torch.randn(shape) * 0.02)  # v

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """The sum of the four terms, by two products: of keys and of distances."""
        # §3.3: A_{i,j} = (a) q_i·k_j + (b) q_i·W_{k,R} R_{i-j} + (c) u·k_j + (d) v·W_{k,R} R_{i-j}, over sqrt(d_k)
        by_content = (q + self.content_bias) @ k.transpose(-2, -1)
        return (by_content + self._by_distance(q + self.position_bias, k.shape[-2])) / math.sqrt(q.shape[-1])

    def terms(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> dict[str, Float[Tensor, "B H T S"]]:
        """The four terms by name, scaled by 1 / sqrt(d_k); what they say of keys after the query means nothing."""
        scale, u, v = math.sqrt(q.shape[-1]), self.content_bias.expand_as(q), self.position_bias.expand_as(q)
        return {
            "content": q @ k.transpose(-2, -1) / scale,
            "content_position": self._by_distance(q, k.shape[-2]) / scale,
            "global_content": u @ k.transpose(-2, -1) / scale,
            "global_position": self._by_distance(v, k.shape[-2]) / scale,
        }

    def _by_distance(self, q: Tensor, keys: int) -> Tensor:
        """(B, H, T, S): each query's product with W_{k,R} R of its distance from each key."""
        distances = sinusoidal_positions(keys, self.d_model, q).flip(0).T  # (D, S), the greatest distance first
        weight = self.distance.weight.unflatten(0, (self.heads, -1))  # (H, K, D)
        # one product of three matrices: few queries, as in a step, are cheaper to map than all the distances
        few = q.shape[-2] < q.shape[-1]
        return relative_shift((q @ weight) @ distances if few else q @ (weight @ distances))


def relative_shift(scores: Float[Tensor, "*heads T S"]) -> Float[Tensor, "*heads T S"]:
    """Appendix B: scores by distance, S - 1 … 0 in every row, become scores by key, without a gather.

    Query i of T stands at position S - T + i, so its row must move T - 1 - i places to the left. One zero before each
    row and a new view of the same numbers do that. Where a key is later than the query, numbers of other rows appear,
    which the causal mask hides.
    """
    T, S = scores.shape[-2:]
    return F.pad(scores, (1, 0)).flatten(-2)[..., T:].unflatten(-1, (T, S))
