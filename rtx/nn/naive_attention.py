"""Attention that knows distances as loops written straight from the equations: the oracle of the fast versions.

Shaw, Uszkoreit & Vaswani (2018), Eq. 3-5; Dai et al. (2019), Transformer-XL, §3.2-3.3.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.naive import sinusoidal_positions


def weighted(scores: list[Tensor], values: list[Tensor]) -> Tensor:
    """The values, (K,) each, by the softmax of their scores."""
    powers = torch.stack(scores).exp()
    return ((powers / powers.sum())[:, None] * torch.stack(values)).sum(0)


def shaw_attention(
    x: Float[Tensor, "B T D"],
    key_table: Float[Tensor, "R K"],
    value_table: Float[Tensor, "R K"],
    w_q: Float[Tensor, "D D"],
    w_k: Float[Tensor, "D D"],
    w_v: Float[Tensor, "D D"],
    w_o: Float[Tensor, "D D"],
    clip: int,
    future: bool = False,
) -> Float[Tensor, "B T D"]:
    """Attention with Shaw's tables, one query, key and head at a time.

    Args:
        x: the sequence.
        key_table: a vector for each distance from -clip; the first 1 + clip rows lie back in time and at 0.
        value_table: the same for values.
        w_q: projection of the queries.
        w_k: projection of the keys.
        w_v: projection of the values.
        w_o: projection of the heads, side by side.
        clip: k.
        future: whether later positions are seen as well.
    """
    B, T, D = x.shape
    K = key_table.shape[1]
    rows = []
    for b in range(B):
        for t in range(T):
            found = []
            for head in range(D // K):
                part = slice(head * K, (head + 1) * K)
                q, scores, values = w_q[part] @ x[b, t], [], []
                for s in range(T if future else t + 1):
                    row = max(-clip, min(clip, s - t)) + clip
                    scores.append(q @ (w_k[part] @ x[b, s] + key_table[row]) / math.sqrt(K))  # Eq. (4)
                    values.append(w_v[part] @ x[b, s] + value_table[row])
                found.append(weighted(scores, values))  # Eq. (3)
            rows.append(w_o @ torch.cat(found))
    return torch.stack(rows).view(B, T, D)


def transformer_xl_terms(
    q: Float[Tensor, " K"],
    k: Float[Tensor, " K"],
    w_r: Float[Tensor, "K D"],
    u: Float[Tensor, " K"],
    v: Float[Tensor, " K"],
    distance: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Terms (a) to (d) of one query and one key, scaled by 1 / sqrt(d_k)."""
    r = w_r @ sinusoidal_positions(distance + 1, w_r.shape[1])[distance].to(q)
    scale = math.sqrt(len(q))
    return q @ k / scale, q @ r / scale, u @ k / scale, v @ r / scale


def transformer_xl_attention(
    x: Float[Tensor, "B T D"],
    u: Float[Tensor, "H 1 K"],
    v: Float[Tensor, "H 1 K"],
    w_q: Float[Tensor, "D D"],
    w_k: Float[Tensor, "D D"],
    w_v: Float[Tensor, "D D"],
    w_o: Float[Tensor, "D D"],
    w_r: Float[Tensor, "D D"],
    segment: int,
    memory: int,
) -> Float[Tensor, "B T D"]:
    """Attention over memory and segment, one query, key and head at a time.

    Args:
        x: what the layer reads.
        u: what every query looks for in a key's content.
        v: what every query looks for in a key's distance.
        w_q: projection of the queries.
        w_k: projection of the keys' content.
        w_v: projection of the values.
        w_o: projection of the heads, side by side.
        w_r: projection of the distances' sinusoids.
        segment: positions in a segment.
        memory: positions before it that are seen as well.
    """
    B, T, D = x.shape
    H, _, K = u.shape
    rows = []
    for row in range(B):
        for t in range(T):
            start, found = t - t % segment, []
            seen = range(max(0, start - memory), t + 1)
            inputs = {s: x[row, s].detach() if s < start else x[row, s] for s in seen}  # SG(memory) ∘ segment
            for head in range(H):
                part = slice(head * K, (head + 1) * K)
                q = w_q[part] @ x[row, t]
                scores, values = [], []
                for s in seen:
                    k = w_k[part] @ inputs[s]
                    a, b, c, d = transformer_xl_terms(q, k, w_r[part], u[head, 0], v[head, 0], t - s)
                    scores.append(a + b + c + d)
                    values.append(w_v[part] @ inputs[s])
                found.append(weighted(scores, values))
            rows.append(w_o @ torch.cat(found))
    return torch.stack(rows).view(B, T, D)
