"""MC-RNN's channels for an LSTM, with the backward pass written by hand; between the products in C++, where it can be.

Xu et al. (2019), Eq. 2-3. What the plain loop spends beyond the arithmetic is products with zero, for predecessors
that a node is not connected to, copies of the past at each step, and sums of the weights' gradients at each step. Here
a node meets its own predecessors only, all states stay where they are written, and the weights' gradients are formed
once, from all steps.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.multi_channel_plain import Wiring, plain_channels
from rtx.nn.kernels.native import channels as native
from rtx.nn.kernels.obstacles import no_hand_written_gradient, no_native_code


class Cell(NamedTuple):
    """The LSTM's step and its gradients, without the products.

    Args:
        forward: (gates, projected input, mixed c, h, c) -> fills h and c, (C, B, H), from the recurrent products in the
            gates, (C, B, 4 H), which become what they are after their sigmoid or tanh.
        backward: (gradients of h and c, c, gates, mixed c, those of the gates) -> fills the last, and returns the
            gradient of the c that the forget gate met.
    """

    forward: Callable[..., None]
    backward: Callable[..., Tensor]


class _Lstm(torch.autograd.Function):
    """x, h, c and the weights → all h and the rings after. Past and new states lie as (P+T, C, B, H)."""

    @staticmethod
    def forward(ctx: Any, wiring: Wiring, cell: Cell, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        x, h, c, w_input, input_bias, u, state_bias, w_block = inputs
        (B, C, P, H), T = h.shape, x.shape[1]
        projected = F.linear(x.transpose(0, 1), w_input, input_bias + state_bias)
        hs, cs = (_and_later(_in_time(ring), T) for ring in (h, c))
        gates, s, mixed = h.new_empty(T, C, B, 4 * H), h.new_zeros(T, C, B, H), h.new_zeros(T, C, B, H)
        shares = _one_over_m(wiring, h)
        for t, links in enumerate(_links(wiring)):
            for j, k in links:
                # Eq. (2): the mean over the predecessors, by a product for each W_j
                s[t, k].view(-1, H).addmm_(hs[P + t - j, k].view(-1, H), w_block[j - 1].t())
                mixed[t, k] += cs[P + t - j, k]
            s[t] *= shares[t]
            mixed[t] *= shares[t]
            if wiring.cell_state == "previous":
                mixed[t] = cs[P + t - 1]
            torch.mm(s[t].view(-1, H), u.t(), out=gates[t].view(-1, 4 * H))
            cell.forward(gates[t], projected[t], mixed[t], hs[P + t], cs[P + t])  # Eq. (3)
        ctx.save_for_backward(*inputs, hs, cs, gates, s, mixed, shares)
        ctx.wiring, ctx.cell = wiring, cell
        return hs[P:].permute(2, 0, 1, 3), _as_ring(hs[T:]), _as_ring(cs[T:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        *inputs, hs, cs, gates, s, mixed, shares = ctx.saved_tensors
        (x, h, _, w_input, _, u, _, w_block), wiring = inputs, ctx.wiring
        with torch.autocast("cpu", enabled=False):
            if only_by_torch(gradients):
                return None, None, *gradients_again(partial(_plain_lstm, wiring), inputs, gradients)
            P, H = h.shape[2:]
            d_hs, d_cs = _of_all_states(hs, *gradients)
            d_gates, d_s = torch.empty_like(gates), torch.empty_like(s)
            for t, links in reversed([*enumerate(_links(wiring))]):
                d_mixed = ctx.cell.backward(d_hs[P + t], d_cs[P + t], cs[P + t], gates[t], mixed[t], d_gates[t])
                torch.mm(d_gates[t].view(-1, 4 * H), u, out=d_s[t].view(-1, H))
                d_s[t] *= shares[t]
                if wiring.cell_state == "previous":
                    d_cs[P + t - 1] += d_mixed
                else:
                    d_mixed *= shares[t]
                for j, k in links:
                    d_hs[P + t - j, k].view(-1, H).addmm_(d_s[t, k].view(-1, H), w_block[j - 1])
                    if wiring.cell_state == "mean":
                        d_cs[P + t - j, k] += d_mixed[k]
            # the weights' gradients: a product for all steps each
            d_projected = d_gates.sum(1).flatten(0, 1)  # (T · B, 4 H)
            d_x = (d_projected @ w_input).view(-1, *x.shape[::2]).transpose(0, 1)
            d_input, d_bias = d_projected.t() @ x.transpose(0, 1).flatten(0, 1), d_projected.sum(0)
            d_u = d_gates.view(-1, 4 * H).t() @ s.view(-1, H)
            past = (_as_ring(one[:P]) for one in (d_hs, d_cs))
            return None, None, d_x, *past, d_input, d_bias, d_u, d_bias, _block_gradient(d_s, hs, wiring)


def _links(wiring: Wiring) -> list[list[tuple[int, slice]]]:
    """By step: each j with the channels in which a node is connected to its jth predecessor."""
    every = len(wiring.degrees[0])
    return [
        [
            (j, k)
            for j in range(1, max(row) + 1)
            for k in ([slice(None)] if min(row) >= j else [slice(k, k + 1) for k in range(every) if row[k] >= j])
        ]
        for row in wiring.degrees
    ]


def _one_over_m(wiring: Wiring, like: Tensor) -> Float[Tensor, "T C 1 1"]:
    return 1 / like.new_tensor(wiring.degrees).clamp(min=1)[..., None, None]


def _and_later(past: Float[Tensor, "P C B H"], steps: int) -> Float[Tensor, "S C B H"]:
    """Past states, and room for the steps after them, in one piece of memory."""
    every = past.new_empty(len(past) + steps, *past.shape[1:])
    every[: len(past)] = past
    return every


def _in_time(ring: Float[Tensor, "B C P H"]) -> Float[Tensor, "P C B H"]:
    return ring.permute(2, 1, 0, 3).flip(0)


def _as_ring(states: Float[Tensor, "P C B H"]) -> Float[Tensor, "B C P H"]:
    return states.flip(0).permute(2, 1, 0, 3)


def _plain_lstm(wiring: Wiring, x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    w_input, input_bias, u, state_bias, w_block = weights
    return plain_channels(x, (h, c), w_input, input_bias, u, state_bias, w_block, wiring)


def _lstm(gates: Tensor, projected: Tensor, mixed: Tensor, h: Tensor, c: Tensor) -> None:
    i, f, g, o = gates.add_(projected).chunk(4, -1)
    gates[..., : 2 * h.shape[-1]].sigmoid_(), g.tanh_(), o.sigmoid_()
    torch.mul(i, g, out=c).addcmul_(f, mixed)
    torch.tanh(c, out=h).mul_(o)


def _lstm_backward(d_h: Tensor, d_c: Tensor, c: Tensor, gates: Tensor, mixed: Tensor, d_gates: Tensor) -> Tensor:
    (i, f, g, o), tanh_c = gates.chunk(4, -1), c.tanh()
    d_i, d_f, d_g, d_o = d_gates.chunk(4, -1)
    through_tanh, through_sigmoid = torch.ops.aten.tanh_backward, torch.ops.aten.sigmoid_backward
    d_c = through_tanh(d_h * o, tanh_c).add_(d_c)
    through_sigmoid(d_c * g, i, grad_input=d_i)
    through_sigmoid(d_c * mixed, f, grad_input=d_f)
    through_tanh(d_c * i, g, grad_input=d_g)
    through_sigmoid(d_h * tanh_c, o, grad_input=d_o)
    return d_c.mul_(f)


def _of_all_states(hs: Tensor, d_states: Tensor | None, *d_rings: Tensor | None) -> tuple[Tensor, Tensor]:
    """The gradients of all h and c, past ones included, as far as the outputs give them."""
    d_hs, d_cs = torch.zeros_like(hs), torch.zeros_like(hs)
    if d_states is not None:
        d_hs[-d_states.shape[1] :] = d_states.permute(1, 2, 0, 3)
    for every, d_ring in zip((d_hs, d_cs), d_rings, strict=True):
        if d_ring is not None:
            every[-d_ring.shape[2] :] += _in_time(d_ring)
    return d_hs, d_cs


def _block_gradient(d_s: Tensor, hs: Tensor, wiring: Wiring) -> Tensor:
    """For each W_j one product, over the nodes that are connected to their jth predecessor."""
    degrees, (T, P, _, H) = d_s.new_tensor(wiring.degrees).flatten(), d_s.shape
    found = []
    for j in range(1, P + 1):
        nodes = (degrees >= j).nonzero().squeeze(1)
        every = (d_s.flatten(0, 1), hs[P - j : P - j + T].flatten(0, 1))
        # all of them are read where they lie
        parts = every if len(nodes) == len(degrees) else (part.index_select(0, nodes) for part in every)
        ours, theirs = (part.view(-1, H) for part in parts)
        found.append(ours.t() @ theirs)
    return torch.stack(found)


def _by(cell: Cell, x: Tensor, rings: tuple[Tensor, ...], *others: Any) -> tuple[Tensor, ...]:
    """In float32 at least, under autocast too, as sums over many steps need it."""
    *weights, wiring = others
    wide = torch.promote_types(weights[0].dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        found = _Lstm.apply(wiring, cell, *(part.to(wide) for part in (x, *rings, *weights)))
    return tuple(part.to(rings[0].dtype) for part in found)


def _obstacle(x: Tensor, rings: tuple[Tensor, ...], *others: Any) -> str | None:
    wiring = others[-1]
    if wiring.cell != "lstm":
        return f"it is written for the LSTM, and the cell is {wiring.cell!r}"
    if wiring.mapping != "shared" or wiring.cell_state == "mapped":
        return "it is written for one W_j, shared by the gates and for h alone"
    return no_hand_written_gradient(x, *rings, *others)


def _not_natively(x: Tensor, rings: tuple[Tensor, ...], *others: Any) -> str | None:
    return _obstacle(x, rings, *others) or no_native_code(x, *rings, *others)


def _drawback(x: Tensor, *_: object) -> str | None:
    return "for one step alone the plain loop is faster" if x.shape[1] == 1 else None


channels = Operation(
    "multi_channel",
    {
        "native": Kernel(partial(_by, Cell(native.lstm, native.lstm_backward)), _not_natively, _drawback),
        "fused": Kernel(partial(_by, Cell(_lstm, _lstm_backward)), _obstacle, _drawback),
        "torch": Kernel(plain_channels),
    },
)
"""`channels(x, rings, w_input, input_bias, u, state_bias, w_block, wiring)`: all h (B, T, C, H), and the rings after.

`rings` are the last P states of each of the C = P channels, (B, C, P, H), the youngest first: h, and an LSTM's c. The
weights are shaped as those of `torch.nn.LSTM`, and w_block, W_1 … W_P, (P, H, H) or (P, gates · H, H).
"""
