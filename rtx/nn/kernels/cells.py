"""The pointwise half of the recurrent cells and of their gradients, for arrays with the features first.

`rtx.nn.recurrent` says what a cell computes; these are the same functions with gates in the rows, (G · H, …), where
each gate is one piece of memory, worked on in place, and with the derivatives written out.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rtx.nn.recurrent import State

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input  # (gradient, output) -> into `grad_input`
tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Kept(NamedTuple):
    """What the backward pass of a step needs, besides its states."""

    gates: Tensor  # (G · H, …)
    more: tuple[Tensor, ...]


class Change(NamedTuple):
    """What a step's backward pass finds: gradients of its arguments."""

    from_state: Tensor  # (G · H, …)
    state: tuple[Any, ...]  # not by way of the recurrent product; None for zero


class FusedCell(NamedTuple):
    """A cell's steps, forward and backward.

    Args:
        name: as every `cell=` argument takes it.
        summed: of its gates, the first ones into which input and state go by their sum, so that their biases may, too.
        more: arrays that a step keeps beside its gates.
        forward: (from_state, from_input, bias, state) -> what to keep, the next state; overwrites `from_state`, to
            whose last rows, those not summed, the bias belongs.
        backward: (gradient of the next state, kept, state, d_input) -> gradients; adds its inputs' to `d_input`.
    """

    name: str
    summed: int
    more: int
    forward: Callable[[Tensor, Tensor, Tensor, State], tuple[Kept, State]]
    backward: Callable[[State, Kept, State, Tensor], Change]


def rnn_forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
    """h' = tanh(x + a), a the recurrent product."""
    h = from_state.add_(from_input).tanh_()
    return Kept(h, ()), (h,)


def rnn_backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
    """da = dh' (1 - h'²)."""
    d_gates = torch.empty_like(kept.gates)
    tanh_backward(d_next[0], kept.gates, grad_input=d_gates)
    d_input += d_gates
    return Change(d_gates, (None,))


def gru_forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
    """h' = n + z (h - n), with n = tanh(x_n + r a_n)."""
    H = len(state[0])
    from_state[: 2 * H].add_(from_input[: 2 * H]).sigmoid_()
    r, z, a_n = from_state[:H], from_state[H : 2 * H], from_state[2 * H :].add_(bias[:, None, None])
    n = torch.addcmul(from_input[2 * H :], r, a_n).tanh_()
    return Kept(from_state, (n,)), (torch.lerp(n, state[0], z),)


def gru_backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
    """dz = dh' (h - n), dn = dh' (1 - z), dr = dn' a_n with dn' = dn (1 - n²), da_n = dn' r, dh = dh' z."""
    (d_h,), (n,), (r, z, a_n) = d_next, kept.more, kept.gates.chunk(3)
    d_gates = torch.empty_like(kept.gates)
    d_r, d_z, d_a = d_gates.chunk(3)
    sigmoid_backward(torch.sub(state[0], n, out=d_z).mul_(d_h), z, grad_input=d_z)
    through = d_h * z
    d_n = d_h - through
    tanh_backward(d_n, n, grad_input=d_n)
    sigmoid_backward(torch.mul(d_n, a_n, out=d_r), r, grad_input=d_r)
    torch.mul(d_n, r, out=d_a)
    d_input[: 2 * len(n)] += d_gates[: 2 * len(n)]
    d_input[2 * len(n) :] += d_n
    return Change(d_gates, (through,))


def lstm_forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
    """c' = f c + i g, h' = o tanh(c')."""
    H = len(state[0])
    gates = from_state.add_(from_input)
    i_f, g, o = gates[: 2 * H].sigmoid_(), gates[2 * H : 3 * H].tanh_(), gates[3 * H :].sigmoid_()
    c = torch.mul(i_f[:H], g).addcmul_(i_f[H:], state[1])
    squashed = c.tanh()
    return Kept(gates, (squashed,)), (o * squashed, c)


def lstm_backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
    """do = dh' tanh(c'), dc' += dh' o (1 - tanh²(c')), df = dc' c, di = dc' g, dg = dc' i, dc = dc' f."""
    (d_h, d_c), (squashed,), (i, f, g, o) = d_next, kept.more, kept.gates.chunk(4)
    d_gates = torch.empty_like(kept.gates)
    d_i, d_f, d_g, d_o = d_gates.chunk(4)
    sigmoid_backward(torch.mul(d_h, squashed, out=d_o), o, grad_input=d_o)
    d_memory = d_h * o
    tanh_backward(d_memory, squashed, grad_input=d_memory)
    d_memory += d_c
    sigmoid_backward(torch.mul(d_memory, g, out=d_i), i, grad_input=d_i)
    sigmoid_backward(torch.mul(d_memory, state[1], out=d_f), f, grad_input=d_f)
    tanh_backward(torch.mul(d_memory, i, out=d_g), g, grad_input=d_g)
    d_input += d_gates
    return Change(d_gates, (None, d_memory.mul_(f)))


FUSED_CELLS = {
    "rnn": FusedCell("rnn", 1, 0, rnn_forward, rnn_backward),
    "gru": FusedCell("gru", 2, 1, gru_forward, gru_backward),
    "lstm": FusedCell("lstm", 4, 1, lstm_forward, lstm_backward),
}
"""By the name every `cell=` argument takes."""
