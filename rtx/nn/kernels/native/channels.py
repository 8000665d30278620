"""The LSTM of an MC-RNN's channels in C++: all that stands between two products in one pass."""

import ctypes

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.kernels.native.build import library

SMALL = 2**20  # numbers in a state: below, a second thread costs more than it does, as for a window's cell


class Step(ctypes.Structure):
    """Of the arrays (C, B, H) of one step; as in channels.cpp."""

    _fields_ = [*((name, ctypes.c_int64) for name in ("rows", "sequences", "width")), ("threads", ctypes.c_int)]


def _call(name: str, state: Tensor, *arrays: Tensor) -> None:
    C, B, H = state.shape
    threads = torch.get_num_threads() if state.numel() >= SMALL else 1
    getattr(library(), name)(Step(C * B, B, H, threads), *(ctypes.c_void_p(array.data_ptr()) for array in arrays))


def lstm(
    gates: Float[Tensor, "C B G"],
    projected: Float[Tensor, "B G"],
    mixed: Float[Tensor, "C B H"],
    h: Float[Tensor, "C B H"],
    c: Float[Tensor, "C B H"],
) -> None:
    """One step, from the recurrent products in `gates`; fills h and c, and `gates` with what they become."""
    _call("channels_forward", mixed, gates, projected, mixed, h, c)


def lstm_backward(
    d_h: Float[Tensor, "C B H"],
    d_c: Float[Tensor, "C B H"],
    c: Float[Tensor, "C B H"],
    gates: Float[Tensor, "C B G"],
    mixed: Float[Tensor, "C B H"],
    d_gates: Float[Tensor, "C B G"],
) -> Float[Tensor, "C B H"]:
    """Its gradients: fills `d_gates`, and returns that of the c that the forget gate met."""
    d_mixed = torch.empty_like(mixed)
    _call("channels_backward", mixed, d_h, d_c, c, gates, mixed, d_gates, d_mixed)
    return d_mixed
