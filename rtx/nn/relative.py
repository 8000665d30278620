"""Attention that uses the distance between query and key: tables of vectors, sinusoids, rotations or a linear bias.

Shaw, Uszkoreit & Vaswani (2018), Self-Attention with Relative Position Representations, Eq. 3-5; Dai et al. (2019),
Transformer-XL: Attentive Language Models beyond a Fixed-Length Context, §3.3 and Appendix B; Su et al. (2021),
RoFormer, Eq. 16; Press, Smith & Lewis (2022), Train Short, Test Long (ALiBi), §3.

All but RoPE are defined for the past only: a mask must hide the keys that are later than their query.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.attention import MultiHeadAttention
from rtx.nn.initial import uniform_parameter
from rtx.nn.ops.conditions import replaced
from rtx.nn.position import rotate, sinusoidal_positions
from rtx.nn.validate import check_positive


class RelativeAttention(MultiHeadAttention):
    """Attention whose keys and values get a vector for their distance from the query.

    All distances from `clip` on share one vector. A position still attends to keys that far away, but cannot tell
    their distances apart. The heads share the tables.

    Args:
        d_model: D, width of the input and of the output.
        heads: H; must divide D.
        clip: k, the distance from which on all keys share a vector.
        dropout: probability that an attention weight is set to zero in training.
    """

    own_scores = True

    def __init__(self, d_model: int, heads: int, clip: int = 16, dropout: float = 0.0) -> None:
        super().__init__(d_model, heads, dropout)
        self.clip, width = check_positive("clip", clip), d_model // heads
        self.key_table, self.value_table = (uniform_parameter(width, clip + 1, width) for _ in range(2))

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """Return how well each query matches each key and its distance. No (T, S, K) table is needed."""
        # Eq. (4)-(5): <q, k_s + a^K_{clip(s - t)}> / sqrt(d_k), the second product once for each distance
        by_distance = q @ self.key_table.T  # (B, H, T, distances)
        rows = self.rows(q.shape[-2], k.shape[-2]).expand(*q.shape[:-1], -1)
        return (q @ k.transpose(-2, -1) + by_distance.gather(-1, rows)) / math.sqrt(q.shape[-1])

    def weighted_sum(self, weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T K"]:
        """Return the weighted sum of the values and of the vectors of their distances."""
        # Eq. (3): Σ_s α_s (v_s + a^V_{clip(s - t)}), the second term once for each distance
        rows = self.rows(*weights.shape[-2:]).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:-1], len(self.value_table)).scatter_add(-1, rows, weights)
        return weights @ v + by_distance @ self.value_table

    def rows(self, queries: int, keys: int) -> Int[Tensor, "T S"]:
        """Return the tables' row for each query and key. Row k is distance 0; earlier rows are further in the past.

        Later keys, which the causal mask hides, get row k too.
        """
        device = self.key_table.device
        t, s = torch.arange(keys - queries, keys, device=device), torch.arange(keys, device=device)
        return (s - t[:, None]).clamp(-self.clip, 0) + self.clip


class RotaryAttention(MultiHeadAttention):
    """Attention whose queries and keys are rotated by angles that grow with their position. K = D / H must be even."""

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, heads, dropout)
        if d_model // heads % 2:
            raise ValueError(f"heads: expected heads of even width in d_model = {d_model}, got {heads}")

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Float[Tensor, "B H T K"]:
        """Let T queries attend to S keys. Without a mask, the queries are at the last T of the S positions."""
        # Eq. (16): a product of rotated vectors depends on their positions only by the distance
        return super().attend(rotate(q, k.shape[-2] - q.shape[-2]), rotate(k), v, mask)

    def attention_weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Float[Tensor, "B H T S"]:
        """Return the attention weights of queries and keys that are not rotated yet; the mask is causal by default."""
        return super().attention_weights(rotate(q, k.shape[-2] - q.shape[-2]), rotate(k), mask)


class LinearBiasAttention(MultiHeadAttention):
    """Attention whose scores fall in proportion to the distance, in each head with another slope (ALiBi)."""

    own_scores = True

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """Return the scores by content, less slope times distance. Head h of H has the slope 2^(-8 h / H)."""
        # §3: softmax(q_i Kᵀ + m · [-(i-1), …, -2, -1, 0])
        T, S = q.shape[-2], k.shape[-2]
        distance = torch.arange(S - T, S, device=q.device)[:, None] - torch.arange(S, device=q.device)
        slope = 2.0 ** (torch.arange(1, self.heads + 1, device=q.device, dtype=q.dtype) * (-8 / self.heads))
        return super().scores(q, k) - slope[:, None, None] * distance


def attention_with(
    position: str, d_model: int, heads: int, max_distance: int, dropout: float = 0.0
) -> MultiHeadAttention:
    """Return attention with "relative" (Shaw), "rotary" or "alibi" positions, or without any for another name."""
    if position == "relative":
        return RelativeAttention(d_model, heads, max_distance, dropout)
    kinds = {"rotary": RotaryAttention, "alibi": LinearBiasAttention}
    return kinds.get(position, MultiHeadAttention)(d_model, heads, dropout)


class XLAttention(MultiHeadAttention):
    """Attention whose score is the sum of four terms: content and distance, each with and without the query.

    On its own it attends to the whole past; `SegmentMemory` gives it the paper's segments. The biases u and v start
    as N(0, 0.02²), as in the authors' code.

    Args:
        d_model: D, width of the input and of the output.
        heads: H; must divide D.
        dropout: probability that an attention weight is set to zero in training.
    """

    own_scores = True

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, heads, dropout)
        self.distance = nn.Linear(d_model, d_model, bias=False)  # W_{k,R}
        shape = (heads, 1, d_model // heads)
        self.content_bias = nn.Parameter(torch.randn(shape) * 0.02)  # u
        self.position_bias = nn.Parameter(torch.randn(shape) * 0.02)  # v

    def scores(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> Float[Tensor, "B H T S"]:
        """Return the sum of the four terms, from two products: with the keys and with the distances."""
        # §3.3: A_{i,j} = (a) q_i·k_j + (b) q_i·W_{k,R} R_{i-j} + (c) u·k_j + (d) v·W_{k,R} R_{i-j}, over sqrt(d_k)
        by_content = (q + self.content_bias) @ k.transpose(-2, -1)
        return (by_content + self._by_distance(q + self.position_bias, k.shape[-2])) / math.sqrt(q.shape[-1])

    def terms(self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"]) -> dict[str, Float[Tensor, "B H T S"]]:
        """Return the four terms by name, divided by sqrt(d_k). Their values for keys after the query mean nothing."""
        scale, u, v = math.sqrt(q.shape[-1]), self.content_bias.expand_as(q), self.position_bias.expand_as(q)
        return {
            "content": q @ k.transpose(-2, -1) / scale,
            "content_position": self._by_distance(q, k.shape[-2]) / scale,
            "global_content": u @ k.transpose(-2, -1) / scale,
            "global_position": self._by_distance(v, k.shape[-2]) / scale,
        }

    def _by_distance(self, q: Tensor, keys: int) -> Tensor:
        """Return the product of each query with W_{k,R} R of its distance from each key, (B, H, T, S)."""
        distances = sinusoidal_positions(keys, self.d_model, q).flip(0)  # (S, D), the largest distance first
        # With few queries it costs less to multiply them by W_{k,R} (T D²) than to project all distances (S D²).
        if q.shape[-2] < q.shape[-1] and not replaced(self.distance):
            weight = self.distance.weight.unflatten(0, (self.heads, -1))  # (H, K, D)
            return relative_shift((q @ weight) @ distances.T)
        return relative_shift(q @ self.distance(distances).unflatten(-1, (self.heads, -1)).permute(1, 2, 0))


def relative_shift(scores: Float[Tensor, "*heads T S"]) -> Float[Tensor, "*heads T S"]:
    """Turn scores by distance, S - 1 … 0 in every row, into scores by key, without an index (Appendix B).

    Query i of T is at position S - T + i, so its row must move T - 1 - i places to the left. A zero in front makes each
    row S + 1 long. Without the first T of all numbers, cut again into rows of S, row 0 has moved by T - 1, and each
    next row by one less. Where a key is later than the query, the numbers belong to other rows. The causal mask hides
    them.
    """
    T, S = scores.shape[-2:]
    return F.pad(scores, (1, 0)).flatten(-2)[..., T:].unflatten(-1, (T, S))
