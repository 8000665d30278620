"""The three recurrent cells as functions of their gates' inputs: the one place where gate arithmetic is written.

A step is given what the input and the last state contribute to each gate, (…, gates · H), already projected and
with both biases of `torch.nn.RNN`, `GRU` and `LSTM` in their order, so whoever calls it decides when and how often
to project.

References: Elman (1990); Hochreiter & Schmidhuber (1997); Cho et al. (2014). Equations as in torch's documentation.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

State = tuple[Tensor, ...]
"""The hidden state h first, (…, H); an LSTM's memory c, (…, H), second."""


class Cell(NamedTuple):
    """A recurrent cell: how many gates it has, and `step(from_input, from_state, state) -> state`.

    `state` is None at the start, where h and c are zero and `from_state` is the bias alone.
    """

    gates: int
    step: Callable[[Tensor, Tensor, State | None], State]


def rnn_step(from_input: Tensor, from_state: Tensor, state: State | None) -> State:
    """h' = tanh(W x + b + U h + b')."""
    return (torch.tanh(from_input + from_state),)


def gru_step(from_input: Tensor, from_state: Tensor, state: State | None) -> State:
    """h' = (1 - z) n + z h, with n = tanh(x_n + r h_n)."""
    x_r, x_z, x_n = from_input.chunk(3, -1)
    h_r, h_z, h_n = from_state.chunk(3, -1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (n - z * n if state is None else n + z * (state[0] - n),)


def lstm_step(from_input: Tensor, from_state: Tensor, state: State | None) -> State:
    """c' = f c + i g, h' = o tanh(c')."""
    i, f, g, o = (from_input + from_state).chunk(4, -1)
    c = torch.sigmoid(i) * torch.tanh(g)
    if state is not None:
        c = c + torch.sigmoid(f) * state[1]
    return torch.sigmoid(o) * torch.tanh(c), c


CELLS = {"rnn": Cell(1, rnn_step), "gru": Cell(3, gru_step), "lstm": Cell(4, lstm_step)}
"""Cells by the name every `cell=` argument takes."""
