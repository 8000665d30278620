"""The bricks as loops written straight from the equations: slow, obvious, the oracle of every test.

Nothing here is shared with the fast versions. Wang et al. (2019), R-Transformer, Eq. 2-8.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def rnn(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Tensor:
    """One step of a plain RNN: vectors x (D,) and h (D,) to the next h (D,)."""
    return torch.tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)


def gru(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Tensor:
    """One step of a GRU, gates in torch's order: reset, update, new."""
    D = len(h)
    a, b = w_ih @ x + b_ih, w_hh @ h + b_hh
    reset = torch.sigmoid(a[:D] + b[:D])
    update = torch.sigmoid(a[D : 2 * D] + b[D : 2 * D])
    new = torch.tanh(a[2 * D :] + reset * b[2 * D :])
    return (1 - update) * new + update * h


def lstm(
    x: Tensor, state: tuple[Tensor, Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM, gates in torch's order: input, forget, cell, output. State is (h, c)."""
    h, c = state
    D = len(h)
    a = w_ih @ x + b_ih + w_hh @ h + b_hh
    i, f, g, o = a[:D], a[D : 2 * D], a[2 * D : 3 * D], a[3 * D :]
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def local_rnn(
    x: Float[Tensor, "B T D"],
    w_ih: Float[Tensor, "G D"],
    w_hh: Float[Tensor, "G D"],
    b_ih: Float[Tensor, " G"],
    b_hh: Float[Tensor, " G"],
    window: int,
    cell: str,
) -> Float[Tensor, "B T D"]:
    """LocalRNN, one window after the other, one position after the other."""
    B, T, D = x.shape
    weights = (w_ih, w_hh, b_ih, b_hh)
    zero = x.new_zeros(D)
    rows = []
    for b in range(B):
        padded = [zero] * (window - 1) + [x[b, t] for t in range(T)]
        for t in range(T):
            h, c = zero, zero
            for x_s in padded[t : t + window]:  # Eq. (2): x_{t-M+1} … x_t
                if cell == "lstm":
                    h, c = lstm(x_s, (h, c), *weights)
                else:
                    h = (gru if cell == "gru" else rnn)(x_s, h, *weights)
            rows.append(h)
    return torch.stack(rows).view(B, T, D)


def multi_head_attention(
    x: Float[Tensor, "B T D"],
    w_q: Float[Tensor, "D D"],
    w_k: Float[Tensor, "D D"],
    w_v: Float[Tensor, "D D"],
    w_o: Float[Tensor, "D D"],
    heads: int,
) -> Float[Tensor, "B T D"]:
    """Causal attention, one position and one head at a time."""
    B, T, D = x.shape
    K = D // heads
    rows = []
    for b in range(B):
        for t in range(T):
            found = []
            for i in range(heads):
                part = slice(i * K, (i + 1) * K)
                q = w_q[part] @ x[b, t]  # Eq. (6)
                scores = torch.stack([(w_k[part] @ x[b, s]) @ q / math.sqrt(K) for s in range(t + 1)])
                alpha = scores.exp() / scores.exp().sum()  # Eq. (5), the sum ends at t
                values = torch.stack([w_v[part] @ x[b, s] for s in range(t + 1)])
                found.append((alpha[:, None] * values).sum(0))
            rows.append(w_o @ torch.cat(found))  # Eq. (4)
    return torch.stack(rows).view(B, T, D)


def feed_forward(u: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    """Eq. 7 for one position, u (D,)."""
    return w_2 @ torch.clamp(w_1 @ u + b_1, min=0) + b_2


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """LayerNorm of one position, x (D,), with the biased variance."""
    centred = x - x.sum() / len(x)
    return gain * centred / torch.sqrt((centred**2).sum() / len(x) + eps) + bias


def sinusoidal_positions(length: int, d_model: int) -> Float[Tensor, "T D"]:
    """sin(t / 10000^(2i/D)) at column 2i, cos at column 2i + 1, a number at a time."""
    table = torch.zeros(length, d_model, dtype=torch.float64)
    for t in range(length):
        for column in range(d_model):
            angle = t / 10_000 ** ((column - column % 2) / d_model)
            table[t, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table
