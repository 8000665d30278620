"""The three recurrent cells as functions of their gates' inputs: the one place where gate arithmetic is written.

A step is given what the input and the last state contribute to each gate, (…, gates · H), already projected and
with both biases of `torch.nn.RNN`, `GRU` and `LSTM` in their order, so whoever calls it decides when and how often
to project.

`read_network` calls torch's own networks, and knows a shorter way for one step of an LSTM.

References: Elman (1990); Hochreiter & Schmidhuber (1997); Cho et al. (2014). Equations as in torch's documentation.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.state import map_state

R = TypeVar("R")
State = tuple[Tensor, ...]
"""The hidden state h first, (…, H); an LSTM's memory c, (…, H), second."""


class Cell(NamedTuple):
    """A recurrent cell: its gates, the parts of its state, and `step(from_input, from_state, state) -> state`.

    `state` is None at the start, where h and c are zero and `from_state` is the bias alone.
    """

    gates: int
    parts: int
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


CELLS = {"rnn": Cell(1, 1, rnn_step), "gru": Cell(3, 1, gru_step), "lstm": Cell(4, 2, lstm_step)}
"""Cells by the name every `cell=` argument takes."""


def beyond_float16(read: Callable[..., R]) -> Callable[..., R]:
    """`read(network, x, state, …)`, which autocast in bfloat16 leaves in the network's own dtype on a GPU.

    There torch's autocast has cuDNN's recurrent networks compute in float16, whatever its dtype is. Gradients are
    scaled for the narrow range of float16 only where that is the dtype: with bfloat16 the small ones would be lost.
    """

    @wraps(read)
    def inside(network: nn.RNNBase, x: Tensor, state: Any, *more: Any) -> R:
        if not (x.is_cuda and torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.bfloat16):
            return read(network, x, state, *more)
        dtype = next(network.parameters()).dtype
        with torch.autocast("cuda", enabled=False):
            return read(network, x.to(dtype), map_state(lambda part: part.to(dtype), state), *more)

    return inside


@beyond_float16
def read_network(
    network: nn.RNNBase, x: Tensor, state: Tensor | tuple[Tensor, ...] | None
) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
    """What `network(x, state)` gives, where x is (B, T, D).

    On a CPU torch's LSTM packs its weights anew at each call, which for a single step is more than the step itself; one
    that is not in training is done by its cells. `make bench flags="--only lstm-steps"` measures what that saves.
    """
    if isinstance(network, nn.LSTM) and x.shape[1] == 1 and not network.training and _packs(x):
        return _one_step(network, x, state)  # type: ignore[arg-type]
    return network(x, state)


def _packs(x: Tensor) -> bool:
    # under autocast the cells would begin in another dtype than the network: with zeros in float32
    return x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def _one_step(network: nn.LSTM, x: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    zeros = x.new_zeros(network.num_layers, x.shape[0], network.hidden_size)
    y, hidden, memories = x.squeeze(1), [], []
    for layer, (h, c) in enumerate(zip(*(state or (zeros, zeros)), strict=True)):
        W, U, b, b_state = network.all_weights[layer]
        y, c = lstm_step(F.linear(y, W, b), F.linear(h, U, b_state), (h, c))
        hidden.append(y)
        memories.append(c)
    return y[:, None], (torch.stack(hidden), torch.stack(memories))
