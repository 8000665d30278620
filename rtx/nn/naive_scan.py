"""RG-LRU as loops written straight from the equations, one step and one number at a time.

De et al. (2024), Griffin, §2.4, Eq. 1-4.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def linear_scan(
    a: Float[Tensor, "B T D"], b: Float[Tensor, "B T D"], start: Float[Tensor, "B D"] | None = None
) -> Float[Tensor, "B T D"]:
    """h_t = a_t h_{t-1} + b_t, one step after the other."""
    h = torch.zeros_like(b[:, 0]) if start is None else start
    states = []
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
    """The states of one sequence; the gates' weights are given block by block."""
    K = w_a.shape[1]
    h = [x.new_zeros(()) for _ in decay]
    states = []
    for x_t in x:
        for d in range(len(h)):
            block = x_t[d // K * K : d // K * K + K]
            r = torch.sigmoid(w_a[d // K, d % K] @ block + b_a[d])  # Eq. (1)
            i = torch.sigmoid(w_x[d // K, d % K] @ block + b_x[d])  # Eq. (2)
            a = torch.sigmoid(decay[d]) ** (8 * r)  # Eq. (3)
            h[d] = a * h[d] + torch.sqrt(1 - a**2) * (i * x_t[d])  # Eq. (4)
        states.append(torch.stack(h))
    return torch.stack(states)
