"""The three recurrent cells, plain RNN, GRU and LSTM, as functions of the inputs of their gates.

This is the one place where the gates' arithmetic is written. A step receives what the input and the last state
contribute to each gate, (…, gates · H), already projected and with the biases added. So the caller decides when to
project. Gates and biases have the order of `torch.nn.RNN`, `GRU` and `LSTM`.

Elman (1990); Cho et al. (2014); Hochreiter & Schmidhuber (1997). The equations are those of torch's documentation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rtx.nn.streaming import map_state

CellState = tuple[Tensor, ...]
"""The hidden state h, (…, H), and for an LSTM also the memory c, (…, H)."""


class Cell(NamedTuple):
    """A recurrent cell.

    Args:
        gates: number of gates.
        parts: number of tensors in its state.
        step: (from_input, from_state, state) to the next state. Before the first position `state` is None, which
            stands for zeros, and `from_state` is the bias alone.
    """

    gates: int
    parts: int
    step: Callable[[Tensor, Tensor, CellState | None], CellState]


def rnn_step(from_input: Tensor, from_state: Tensor, state: CellState | None) -> CellState:
    """h' = tanh(W x + b + U h + b')."""
    return (torch.tanh(from_input + from_state),)


def gru_step(from_input: Tensor, from_state: Tensor, state: CellState | None) -> CellState:
    """h' = (1 - z) n + z h, with n = tanh(x_n + r h_n)."""
    x_r, x_z, x_n = from_input.chunk(3, -1)
    h_r, h_z, h_n = from_state.chunk(3, -1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (n - z * n if state is None else n + z * (state[0] - n),)


def lstm_step(from_input: Tensor, from_state: Tensor, state: CellState | None) -> CellState:
    """c' = f c + i g, h' = o tanh(c')."""
    i, f, g, o = (from_input + from_state).chunk(4, -1)
    c = torch.sigmoid(i) * torch.tanh(g)
    if state is not None:
        c = c + torch.sigmoid(f) * state[1]
    return torch.sigmoid(o) * torch.tanh(c), c


CELLS = {"rnn": Cell(1, 1, rnn_step), "gru": Cell(3, 1, gru_step), "lstm": Cell(4, 2, lstm_step)}
"""The cells by the name that every `cell=` argument takes."""


def run_network(
    run: Callable[[Tensor, Any], tuple[Tensor, Any]], network: nn.RNNBase, x: Tensor, state: Any
) -> tuple[Tensor, Any]:
    """Return `run(x, state)`, but not in half precision under bfloat16 autocast on a GPU.

    There torch runs cuDNN's recurrent networks in float16, whatever the autocast dtype is. Gradients are scaled for
    the narrow range of float16 only if that is the autocast dtype. With bfloat16, small gradients would become zero.

    Args:
        run: calls the network.
        network: whose dtype is used instead.
        x: input.
        state: of the network. It may have another dtype than `x`, because it was made under autocast.
    """
    if not (x.is_cuda and torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.bfloat16):
        return run(x, map_state(lambda part: part.to(x.dtype), state))
    dtype = next(network.parameters()).dtype
    with torch.autocast("cuda", enabled=False):
        return run(x.to(dtype), map_state(lambda part: part.to(dtype), state))
