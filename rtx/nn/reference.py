"""The bricks as loops written straight from the equations: slow, obvious, and the oracle of the tests.

Nothing here is shared with the fast versions. Weights have the names and layouts of the layers that they belong to.
Most functions work on one sequence, one step and one head at a time.
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Weights = dict[str, Tensor]


# R-Transformer: Wang et al. (2019), Eq. 2-8


def cell(name: str, a: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a plain RNN, GRU or LSTM; return the next h and c.

    h and c (D,) are the state before; only an LSTM uses c. a comes from the input and b from the state h. Each has the
    bias in it, and the gates one after the other in torch's order, (gates · D,).
    """
    D = len(h)
    gate = [slice(i * D, (i + 1) * D) for i in range(4)]
    if name == "rnn":
        return torch.tanh(a + b), c
    if name == "gru":
        reset, update = torch.sigmoid(a[gate[0]] + b[gate[0]]), torch.sigmoid(a[gate[1]] + b[gate[1]])
        new = torch.tanh(a[gate[2]] + reset * b[gate[2]])
        return (1 - update) * new + update * h, c
    i, f, g, o = ((a + b)[part] for part in gate)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def local_rnn(
    x: Float[Tensor, "B T D"],
    w_ih: Float[Tensor, "G D"],
    w_hh: Float[Tensor, "G D"],
    b_ih: Float[Tensor, " G"],
    b_hh: Float[Tensor, " G"],
    window: int,
    name: str,
) -> Float[Tensor, "B T D"]:
    """LocalRNN, one window after the other, one position after the other."""
    B, T, D = x.shape
    zero = x.new_zeros(D)
    rows = []
    for sequence in x:
        padded = [zero] * (window - 1) + list(sequence)
        for t in range(T):  # Eq. (3): one state for each position
            h, c = zero, zero
            for x_s in padded[t : t + window]:  # Eq. (2): the cell reads x_{t-M+1} … x_t
                h, c = cell(name, w_ih @ x_s + b_ih, w_hh @ h + b_hh, h, c)
            rows.append(h)
    return torch.stack(rows).view(B, T, D)


def weighted(scores: list[Tensor], values: list[Tensor]) -> Tensor:
    """The sum of the values, (K,) each, weighted by the softmax of their scores."""
    exponentials = torch.stack(scores).exp()
    return ((exponentials / exponentials.sum())[:, None] * torch.stack(values)).sum(0)


def multi_head_attention(
    x: Float[Tensor, "B T D"], w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, heads: int
) -> Float[Tensor, "B T D"]:
    """Causal attention; all projections are (D, D)."""
    B, T, D = x.shape
    K = D // heads
    rows = []
    for b in range(B):
        for t in range(T):
            head_outputs = []
            for i in range(heads):
                part = slice(i * K, (i + 1) * K)
                # Eq. (6)
                q = w_q[part] @ x[b, t]
                keys = [w_k[part] @ x[b, s] for s in range(t + 1)]
                values = [w_v[part] @ x[b, s] for s in range(t + 1)]
                # Eq. (5)
                head_outputs.append(weighted([k @ q / math.sqrt(K) for k in keys], values))
            rows.append(w_o @ torch.cat(head_outputs))  # Eq. (4)
    return torch.stack(rows).view(B, T, D)


def feed_forward(u: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    """Eq. (7) for one position, u (D,)."""
    return w_2 @ torch.clamp(w_1 @ u + b_1, min=0) + b_2


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """LayerNorm of one position, x (D,), with the biased variance."""
    centred = x - x.sum() / len(x)
    return gain * centred / torch.sqrt((centred**2).sum() / len(x) + eps) + bias


def r_transformer_block(x: Float[Tensor, "B T D"], p: Weights, window: int, name: str, heads: int) -> Tensor:
    """Eq. (8): LocalRNN, attention and feed-forward network; after each its input is added, then LayerNorm.

    p is the state dict of a block of `rtx.models.RTransformer` with its defaults: 0 is the LocalRNN, 1 the attention, 2
    the feed-forward network. Names are "0.sublayer.weight_ih_l0", "0.norm.weight" and so on.
    """

    def weights(i: int) -> list[Tensor]:  # in the order in which the sublayer defines them
        return [weight for key, weight in p.items() if key.startswith(f"{i}.sublayer.")]

    def norm(i: int, x: Tensor) -> Tensor:
        gain, bias = p[f"{i}.norm.weight"], p[f"{i}.norm.bias"]
        return torch.stack([torch.stack([layer_norm(u, gain, bias) for u in sequence]) for sequence in x])

    w_ih, w_hh, b_ih, b_hh = weights(0)
    x = norm(0, x + local_rnn(x, w_ih, w_hh, b_ih, b_hh, window, name))
    w_q, w_k, w_v, w_o = weights(1)
    x = norm(1, x + multi_head_attention(x, w_q, w_k, w_v, w_o, heads))
    w_1, b_1, w_2, b_2 = weights(2)
    y = torch.stack([torch.stack([feed_forward(u, w_1, b_1, w_2, b_2) for u in sequence]) for sequence in x])
    return norm(2, x + y)


def sinusoidal_positions(length: int, d_model: int) -> Float[Tensor, "T D"]:
    """sin(t / 10000^(2i/D)) in column 2i, cos in column 2i + 1: Vaswani et al. (2017), §3.5."""
    table = torch.zeros(length, d_model, dtype=torch.float64)
    for t in range(length):
        for column in range(d_model):
            angle = t / 10_000 ** ((column - column % 2) / d_model)
            table[t, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


# Attention with distances: Shaw, Uszkoreit & Vaswani (2018), Eq. 3-5; Dai et al. (2019), Transformer-XL, §3.2-3.3


def shaw_attention(
    x: Float[Tensor, "B T D"],
    key_table: Float[Tensor, "R K"],
    value_table: Float[Tensor, "R K"],
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    clip: int,
) -> Float[Tensor, "B T D"]:
    """Causal attention with Shaw's tables: the first row is distance -clip, the last one distance 0."""
    B, T, D = x.shape
    K = key_table.shape[1]
    rows = []
    for b in range(B):
        for t in range(T):
            found = []
            for head in range(D // K):
                part = slice(head * K, (head + 1) * K)
                q, scores, values = w_q[part] @ x[b, t], [], []
                for s in range(t + 1):
                    row = max(-clip, s - t) + clip
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
    """Terms (a) to (d) of one query and one key, divided by sqrt(d_k)."""
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
    """Attention to the segment so far and to `memory` positions before it, which get no gradient."""
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
                terms = (
                    transformer_xl_terms(q, w_k[part] @ inputs[s], w_r[part], u[head, 0], v[head, 0], t - s)
                    for s in seen
                )
                found.append(weighted([a + b + c + d for a, b, c, d in terms], [w_v[part] @ inputs[s] for s in seen]))
            rows.append(w_o @ torch.cat(found))
    return torch.stack(rows).view(B, T, D)


# Feed-forward attention: Raffel & Ellis (2015), Eq. 1-2 and §2.1


def feed_forward_attention(
    x: Float[Tensor, "T F"], p: Weights, pooling: str = "attention", leak: str = "coded"
) -> Float[Tensor, " K"]:
    """The output for one sequence without padding; p is the state dict of `rtx.models.FeedForwardAttention`."""
    score, shift = (p["score.weight"], p["score.bias"]) if pooling == "attention" else (None, None)
    c = context(x, p["hidden.weight"], p["hidden.bias"], score, shift, leak)
    s = lrelu(p["context.weight"] @ c + p["context.bias"], leak)
    return lrelu(p["output.weight"] @ s + p["output.bias"], leak)


def context(
    x: Float[Tensor, "T F"], weight: Tensor, bias: Tensor, score: Tensor | None, shift: Tensor | None, leak: str
) -> Float[Tensor, " D"]:
    """The weighted mean of one sequence's states, or their plain mean if there is no score."""
    h = [lrelu(weight @ x_t + bias, leak) for x_t in x]
    if score is None or shift is None:
        return torch.stack(h).sum(0) / len(h)  # Eq. (2)
    return weighted([torch.tanh(score @ h_t + shift)[0] for h_t in h], h)  # Eq. (1)


def pooling(x: Float[Tensor, "B T F"], lengths: Int[Tensor, " B"], *layer: Any) -> Float[Tensor, "B D"]:
    """The context of each sequence without its padding; `layer` as in `context`."""
    return torch.stack([context(row[:n], *layer) for row, n in zip(x, lengths, strict=True)])


def lrelu(v: Float[Tensor, " N"], leak: str) -> Float[Tensor, " N"]:
    """max(v, .01) as printed, max(v, .01 v) as in the authors' code."""
    return torch.maximum(v, torch.full_like(v, 0.01) if leak == "printed" else 0.01 * v)


# MC-RNN: Xu et al. (2019), Eq. 1-6. A channel's states are stored by step; a step before the start is missing.


def block_start(t: int, k: int, block: int, phase: str) -> int:
    """The first node of the block that node t of channel k reads, by a walk over the blocks: t - m in Eq. (1)."""
    begin = k if phase == "equation" else 2 - k
    while begin >= t:
        begin -= block - 1
    while begin + block - 1 < t:
        begin += block - 1
    return begin


def mean_of(states: dict[int, Tensor], before: range, t: int, maps: list[Tensor] | None = None) -> Tensor | float:
    """Eq. (2) at step t: the mean of the predecessors' states, through the W_j of their distances if there are maps."""
    total: Tensor | float = 0.0
    for s in before:
        if s in states:  # before the start, h is zero
            total = total + (states[s] if maps is None else maps[t - s - 1] @ states[s])
    return total / max(len(before), 1)


def multi_channel(
    x: Float[Tensor, "B T D"],
    p: Weights,
    block: int,
    name: str,
    start: str = "equation",
    phase: str = "equation",
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B T C"]]:
    """One MC-RNN layer: its output, and the weights of the channels."""
    B, T, _ = x.shape
    H = p["weight_hh_l0"].shape[1]
    maps = list(p["weight_block"])  # maps[j - 1] is W_j
    v, r, zero = p["attention_v.weight"], p["attention_r.weight"][0], x.new_zeros(H)
    outputs, weights = [], []
    for sequence in x:
        h: list[dict[int, Tensor]] = [{} for _ in range(block)]  # channel k = 1 … n - 1
        c: list[dict[int, Tensor]] = [{} for _ in range(block)]
        for t, x_t in enumerate(sequence, 1):
            for k in range(1, block):
                first = block_start(t, k, block, phase)
                before = range(max(first, 1) if start == "clipped" else first, t)
                # "zero +" makes a tensor of the number 0.0
                s, memory = zero + mean_of(h[k], before, t, maps), zero + mean_of(c[k], before, t)
                a, b = p["weight_ih_l0"] @ x_t + p["bias_ih_l0"], p["weight_hh_l0"] @ s + p["bias_hh_l0"]
                h[k][t], c[k][t] = cell(name, a, b, s, memory)  # Eq. (3)
            e = torch.stack([r @ torch.tanh(v @ torch.cat([h[k][t], x_t])) for k in range(1, block)])  # Eq. (6)
            alpha = e.exp() / e.exp().sum()  # Eq. (5)
            outputs.append(torch.stack([alpha[k - 1] * h[k][t] for k in range(1, block)]).sum(0))  # Eq. (4)
            weights.append(alpha)
    return torch.stack(outputs).view(B, T, H), torch.stack(weights).view(B, T, block - 1)


# RG-LRU: De et al. (2024), Griffin, §2.4, Eq. 1-4


def linear_scan(a: Float[Tensor, "B T D"], b: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
    """h_t = a_t h_{t-1} + b_t, one step after the other."""
    h, states = torch.zeros_like(b[:, 0]), []
    for t in range(b.shape[1]):
        h = a[:, t] * h + b[:, t]
        states.append(h)
    return torch.stack(states, 1)


def rg_lru(
    x: Float[Tensor, "T D"],
    decay: Float[Tensor, " D"],
    w_a: Float[Tensor, "H K K"],
    b_a: Float[Tensor, " D"],
    w_x: Float[Tensor, "H K K"],
    b_x: Float[Tensor, " D"],
) -> Float[Tensor, "T D"]:
    """The states of one sequence; the weights of the gates are given block by block."""
    K = w_a.shape[1]
    h = [x.new_zeros(()) for _ in decay]
    states = []
    for x_t in x:
        for d in range(len(h)):
            block = x_t[d // K * K : d // K * K + K]
            r = torch.sigmoid(w_a[d // K, d % K] @ block + b_a[d])  # Eq. (1)
            i = torch.sigmoid(w_x[d // K, d % K] @ block + b_x[d])  # Eq. (2)
            a = torch.sigmoid(decay[d]) ** (8 * r)  # Eq. (3), with c = 8
            h[d] = a * h[d] + torch.sqrt(1 - a**2) * (i * x_t[d])  # Eq. (4)
        states.append(torch.stack(h))
    return torch.stack(states)
