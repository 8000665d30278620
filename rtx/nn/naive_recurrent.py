"""MC-RNN, HO-RNN and HM-RNN as loops written straight from the equations: slow, obvious, the oracle of their tests.

Nothing here is shared with the fast versions. Xu et al. (2019), Eq. 1-6; Soltani & Jiang (2016); Chung, Ahn &
Bengio (2017), Eq. 2-9 and 11-12. Weights are named and laid out as in the fast layers.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Weights = dict[str, Tensor]
Channel = dict[int, Tensor]
"""A channel's states by step; a step before the start is not in it."""


def cell(name: str, a: Tensor, b: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a cell: a (G·H,) from the input, b (G·H,) from the state, s and c (H,) before; h and c after."""
    H = len(s)
    gate = [slice(i * H, (i + 1) * H) for i in range(4)]
    if name == "rnn":
        return torch.tanh(a + b), c
    if name == "gru":
        reset, update = torch.sigmoid(a[gate[0]] + b[gate[0]]), torch.sigmoid(a[gate[1]] + b[gate[1]])
        new = torch.tanh(a[gate[2]] + reset * b[gate[2]])
        return (1 - update) * new + update * s, c
    i, f, g, o = ((a + b)[part] for part in gate)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def block_start(t: int, k: int, block: int, phase: str) -> int:
    """The first node of the block in which node t of channel k has predecessors, by walking from block to block."""
    begin = k if phase == "equation" else 2 - k
    while begin >= t:
        begin -= block - 1
    while begin + block - 1 < t:
        begin += block - 1
    return begin


def mean_of(states: Channel, before: range, t: int, maps: list[Tensor] | None) -> Tensor | float:
    """Eq. 2 at step t: the mean of the predecessors' states, each through the W_j of its distance if maps are given."""
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
    cell_state: str = "mean",
    mapping: str = "shared",
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B T C"]]:
    """One MC-RNN layer, one channel, one step and one predecessor at a time; its output and the channels' weights."""
    (B, T, _), H = x.shape, p["weight_hh_l0"].shape[1]
    gates = len(p["weight_hh_l0"]) // H
    maps = [[w[g * H : (g + 1) * H] for w in p["weight_block"]] for g in range(gates if mapping == "per-gate" else 1)]
    candidate = maps[min(2, len(maps) - 1)]
    v, r, zero = p["attention_v.weight"], p["attention_r.weight"][0], x.new_zeros(H)
    outputs, weights = [], []
    for sequence in x:
        h: list[Channel] = [{} for _ in range(block)]  # channel k = 1 … n - 1
        c: list[Channel] = [{} for _ in range(block)]
        for t, x_t in enumerate(sequence, 1):
            for k in range(1, block):
                first = block_start(t, k, block, phase)
                before = range(max(first, 1) if start == "clipped" else first, t)
                memory = {
                    "mean": mean_of(c[k], before, t, None),
                    "previous": c[k].get(t - 1, zero),
                    "mapped": mean_of(c[k], before, t, candidate),
                }[cell_state]
                recurrent = []
                for g in range(gates):
                    s = mean_of(h[k], before, t, maps[g if mapping == "per-gate" else 0])
                    recurrent.append(p["weight_hh_l0"][g * H : (g + 1) * H] @ (zero + s))
                a, b = p["weight_ih_l0"] @ x_t + p["bias_ih_l0"], torch.cat(recurrent) + p["bias_hh_l0"]
                s = zero + mean_of(h[k], before, t, candidate)
                h[k][t], c[k][t] = cell(name, a, b, s, zero + memory)  # Eq. (3)
            e = torch.stack([r @ torch.tanh(v @ torch.cat([h[k][t], x_t])) for k in range(1, block)])  # Eq. (6)
            alpha = e.exp() / e.exp().sum()  # Eq. (5)
            outputs.append(torch.stack([alpha[k - 1] * h[k][t] for k in range(1, block)]).sum(0))  # Eq. (4)
            weights.append(alpha)
    return torch.stack(outputs).view(B, T, H), torch.stack(weights).view(B, T, block - 1)


def higher_order(
    x: Float[Tensor, "B T D"], p: Weights, order: int, pooling: str, name: str, forgetting: float
) -> Float[Tensor, "B T D"]:
    """One HO-RNN layer, one step, one earlier state and one number of the maximum at a time."""
    B, T, D = x.shape
    w = p["weight_hh_l0"]
    rows = []
    for sequence in x:
        h, c = [x.new_zeros(D)] * order, x.new_zeros(D)  # h_{t-1} is the last
        for x_t in sequence:
            products = []
            for n in range(1, order + 1):
                product = w[:, (n - 1) * D : n * D] @ h[-n]
                if pooling == "fofe":
                    product = forgetting**n * product
                if pooling == "gated":
                    r = torch.sigmoid(p["gate_input"][(n - 1) * D : n * D] @ x_t + p["gate_state"][n - 1] @ h[-n])
                    product = torch.cat([r * gate for gate in product.split(D)])
                products.append(product)
            if pooling == "max":
                pooled = torch.stack([max(numbers) for numbers in zip(*products, strict=True)])
            else:
                pooled = torch.stack(products).sum(0)
            h_t, c = cell(name, p["weight_ih_l0"] @ x_t + p["bias_ih_l0"], pooled + p["bias_hh_l0"], h[-1], c)
            h = [*h, h_t]
            rows.append(h_t)
    return torch.stack(rows).view(B, T, D)


def level(
    p: Weights, below: Tensor, z_below: Tensor, h: Tensor, c: Tensor, z: Tensor, above: Tensor | None, slope: float
) -> tuple[Tensor, Tensor, Tensor, str]:
    """One layer of HM-RNN for a step: h, c and z after it, and its operation. z (1,) is a 0 or a 1; above, h_{t-1}."""
    D = len(h)
    s = p["recurrent"] @ h + z_below * (p["bottom_up"] @ below) + p["bias"]  # Eq. (5), (7)
    if above is not None:
        s = s + z * (p["top_down"] @ above)  # Eq. (6)
    i, f, g, o = s[:D].sigmoid(), s[D : 2 * D].sigmoid(), s[2 * D : 3 * D].tanh(), s[3 * D : 4 * D].sigmoid()
    # Eq. (2): of the three cases one counts, but a gradient reaches all three through the boundaries
    cases = {"update": f * c + i * g, "copy": c, "flush": i * g}
    counts = {"update": (1 - z) * z_below, "copy": (1 - z) * (1 - z_below), "flush": z}
    c = counts["update"] * cases["update"] + counts["copy"] * cases["copy"] + counts["flush"] * cases["flush"]
    h = counts["copy"] * h + (1 - counts["copy"]) * (o * c.tanh())  # Eq. (3)
    done = "flush" if z == 1 else "update" if z_below == 1 else "copy"
    return h, c, z if above is None else StraightThrough.apply(s[4 * D :], slope), done


def hierarchical(
    x: Float[Tensor, "B T D"], levels: list[Weights], w_gates: Tensor, w_output: Tensor, slope: float = 1.0
) -> tuple[Float[Tensor, "B T D"], list[list[list[str]]]]:
    """HM-RNN, one sequence, step and layer at a time; its output, and each layer's operation by sequence and step."""
    (B, T, D), L = x.shape, len(levels)
    rows: list[Tensor] = []
    names: list[list[list[str]]] = []
    for sequence in x:
        h, c, z = ([x.new_zeros(size)] * L for size in (D, D, 1))
        names.append([])
        for x_t in sequence:
            below, z_below, above = x_t, x.new_ones(1), [*h[1:], None]
            done = [""] * L
            for i in range(L):
                h[i], c[i], z[i], done[i] = level(levels[i], below, z_below, h[i], c[i], z[i], above[i], slope)
                below, z_below = h[i], z[i]
            gates = [torch.sigmoid(w @ torch.cat(h)) for w in w_gates]  # Eq. (11)
            parts = [gates[i] * (w_output[:, i * D : (i + 1) * D] @ h[i]) for i in range(L)]
            rows.append(torch.clamp(torch.stack(parts).sum(0), min=0))  # Eq. (12)
            names[-1].append(done)
    return torch.stack(rows).view(B, T, D), names


class StraightThrough(torch.autograd.Function):
    """A step forward, Eq. 9; backward the slope of the hard sigmoid: a/2 where it is not flat, and 0 where it is."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, slope: float) -> Tensor:
        """1 where max(0, min(1, (a s + 1) / 2)) is above 1/2."""
        ctx.save_for_backward(s)
        ctx.slope = slope
        return torch.tensor([float((slope * number + 1) / 2 > 0.5) for number in s], dtype=s.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient of the hard sigmoid."""
        (s,) = ctx.saved_tensors
        return gradients[0] * ctx.slope / 2 * ((ctx.slope * s).abs() < 1).to(s.dtype), None
