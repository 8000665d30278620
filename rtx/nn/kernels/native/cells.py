"""The recurrent cells of `rtx.nn.kernels.cells` in C++: all that stands between two products in one pass."""

import ctypes

import torch
from torch import Tensor

from rtx.nn.kernels.cells import Change, FusedCell, Kept
from rtx.nn.kernels.native.build import library
from rtx.nn.recurrent import State

# Numbers in a state: below, a second thread costs more than it does. A step is short, and follows a product whose own
# threads still wait for the next one, on the same cores.
SMALL = 2**20


class Sizes(ctypes.Structure):
    """Of the arrays (D, B, T) of one step, and of the rows of its inputs; as in cells.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("features", "sequences", "length", "stride")),
        ("threads", ctypes.c_int),
    ]


def _call(name: str, state: Tensor, inputs: Tensor, *arrays: Tensor) -> None:
    D, B, T = state.shape
    threads = torch.get_num_threads() if state.numel() >= SMALL else 1
    pointers = (ctypes.c_void_p(array.data_ptr()) for array in arrays)
    getattr(library(), name)(Sizes(D, B, T, inputs.stride(1), threads), *pointers)


def rnn_forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
    """One step."""
    _call("rnn_forward", state[0], from_input, from_state, from_input)
    return Kept(from_state, ()), (from_state,)


def rnn_backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
    """Its gradients."""
    d_gates = torch.empty_like(kept.gates)
    _call("rnn_backward", state[0], d_input, d_next[0], kept.gates, d_gates, d_input)
    return Change(d_gates, (None,))


def gru_forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
    """One step."""
    n, following = torch.empty_like(state[0]), torch.empty_like(state[0])
    _call("gru_forward", n, from_input, from_state, from_input, bias, state[0], n, following)
    return Kept(from_state, (n,)), (following,)


def gru_backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
    """Its gradients."""
    d_gates, through = torch.empty_like(kept.gates), torch.empty_like(state[0])
    arrays = (d_next[0], kept.gates, *kept.more, state[0], d_gates, d_input, through)
    _call("gru_backward", through, d_input, *arrays)
    return Change(d_gates, (through,))


def lstm_forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
    """One step."""
    squashed, h, c = (torch.empty_like(state[1]) for _ in range(3))
    _call("lstm_forward", h, from_input, from_state, from_input, state[1], squashed, h, c)
    return Kept(from_state, (squashed,)), (h, c)


def lstm_backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
    """Its gradients."""
    d_gates, d_c = torch.empty_like(kept.gates), torch.empty_like(state[1])
    arrays = (*d_next, kept.gates, *kept.more, state[1], d_gates, d_input, d_c)
    _call("lstm_backward", d_c, d_input, *arrays)
    return Change(d_gates, (None, d_c))


NATIVE_CELLS = {
    "rnn": FusedCell("rnn", 1, 0, rnn_forward, rnn_backward),
    "gru": FusedCell("gru", 2, 1, gru_forward, gru_backward),
    "lstm": FusedCell("lstm", 4, 1, lstm_forward, lstm_backward),
}
"""By the name every `cell=` argument takes."""
