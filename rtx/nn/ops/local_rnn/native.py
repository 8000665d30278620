"""LocalRNN with the gates of a GRU or LSTM in C++, and a backward pass of its own; the matrix products are torch's.

Arrays have features first, (D, B, T), because each gate is then one piece of memory. `native.cpp` does all that is
between two products in one pass over memory.
"""

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.ops.build import library
from rtx.nn.ops.gradients import autocast_inputs, first_derivatives_only, without_autocast

# Gates, from the first, that see only the sum of input and recurrent product, so that their two biases can be added at
# once. A GRU's last gate is different: its reset gate multiplies the product.
SUMMED = {"gru": 2, "lstm": 4}
# Sequences are processed in groups whose states have about this many numbers, so that a group fits the core's cache.
GROUP = 2**17
# Narrower layers compute their gates again in the backward pass instead of storing them: this saves memory.
STORE_FROM = 64
# Smaller states use one thread: the threads of the product before are still spinning on the other cores.
PARALLEL_FROM = 2**20


class Sizes(ctypes.Structure):
    """Sizes of the arrays of one step, as in native.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("features", "sequences", "length", "stride")),
        ("threads", ctypes.c_int),
    ]


class Step(NamedTuple):
    """What the backward pass needs of one step of the cell.

    Args:
        gates: (G, B, T).
        extra: n of a GRU or tanh(c) of an LSTM, (D, B, T).
        h: the state after the step, (D, B, T).
        c: an LSTM's memory after the step, and `h` of a GRU, which has none.
    """

    gates: Tensor
    extra: Tensor
    h: Tensor
    c: Tensor


def native_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """Return the last hidden state of every window."""
    x, *weights = autocast_inputs(x, w_ih, w_hh, b_ih, b_hh)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, *weights))
    run = _LocalRNN.apply if learns else _without_gradient
    groups = x.split(max(1, GROUP // (x.shape[1] * x.shape[2])))
    parts: list[Tensor] = [run(group, *weights, window, cell) for group in groups]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@without_autocast
def _without_gradient(x: Tensor, *weights_and_more: Any) -> Tensor:
    for step in _steps(x, *weights_and_more):
        last = step.h
    return last.permute(1, 2, 0).contiguous()


class _LocalRNN(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
    ) -> Tensor:
        ctx.window, ctx.cell = window, cell
        if x.shape[2] < STORE_FROM:
            ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh)
            return _without_gradient(x, w_ih, w_hh, b_ih, b_hh, window, cell)
        steps = list(_steps(x, w_ih, w_hh, b_ih, b_hh, window, cell))
        ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh, *(array for step in steps for array in step))
        return steps[-1].h.permute(1, 2, 0).contiguous()

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, w_ih, w_hh, b_ih, b_hh, *stored = ctx.saved_tensors
        first_derivatives_only("local_rnn", gradients)
        steps = [Step(*stored[i : i + 4]) for i in range(0, len(stored), 4)]
        steps = steps or list(_steps(x, w_ih, w_hh, b_ih, b_hh, ctx.window, ctx.cell))
        return *_gradients(gradients[0], x, w_ih, w_hh, b_hh, steps, ctx.cell), None, None


def _steps(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str) -> Iterator[Step]:
    """Advance all windows by one position at a time."""
    (B, T, D), summed = x.shape, SUMMED[cell] * x.shape[2]
    bias = (b_ih + F.pad(b_hh[:summed], (0, len(b_hh) - summed)))[:, None, None]
    last_bias = b_hh[summed:].contiguous()
    projected = x.new_empty(len(w_ih), B, window - 1 + T)
    projected[..., : window - 1] = bias  # the projection of a zero vector
    torch.add((w_ih @ x.reshape(B * T, D).T).view(-1, B, T), bias, out=projected[..., window - 1 :])
    h = c = x.new_zeros(D, B, T)
    for i in range(window):
        # Eq. (2)-(3)
        gates = (w_hh @ h.flatten(1) if i else x.new_zeros(len(w_hh), B * T)).view(-1, B, T)
        extra, after = torch.empty_like(h), torch.empty_like(h)
        step = Step(gates, extra, after, torch.empty_like(h) if cell == "lstm" else after)  # C++ fills it
        _call(f"{cell}_forward", h, projected[..., i : i + T], gates, last_bias, h, c, step.extra, step.h, step.c)
        h, c = step.h, step.c
        yield step


def _gradients(
    d_out: Tensor, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_hh: Tensor, steps: list[Step], cell: str
) -> tuple[Tensor, ...]:
    """Return the gradients of x, w_ih, w_hh, b_ih and b_hh: from the last step of the windows to the first."""
    (B, T, D), M, summed = x.shape, len(steps), SUMMED[cell] * x.shape[2]
    d_input = x.new_zeros(len(w_ih), B, M - 1 + T)
    d_w_hh, d_b_hh = torch.zeros_like(w_hh), torch.zeros_like(b_hh)
    d_h = d_out.permute(2, 0, 1).contiguous()
    zero = d_c = torch.zeros_like(d_h)
    for i in reversed(range(M)):
        h, c = (steps[i - 1].h, steps[i - 1].c) if i else (zero, zero)
        # `direct` is the gradient of h that does not flow through the recurrent product; only a GRU has one
        d_gates, direct, d_c_before = torch.empty_like(steps[i].gates), torch.empty_like(h), torch.empty_like(h)
        arrays = (d_h, d_c, steps[i].gates, steps[i].extra, h, c, d_gates, direct, d_c_before)
        _call(f"{cell}_backward", h, d_input[..., i : i + T], *arrays)
        d_product = d_gates.flatten(1)
        d_b_hh[summed:] += d_product[summed:].sum(1)
        if i:
            d_w_hh.addmm_(d_product, h.flatten(1).T)
            d_h = direct.flatten(1).addmm_(w_hh.T, d_product) if cell == "gru" else w_hh.T @ d_product
            d_h, d_c = d_h.view(D, B, T), d_c_before
    d_b_ih = d_input.sum((1, 2))
    d_b_hh[:summed] = d_b_ih[:summed]
    d_projected = d_input[..., M - 1 :].reshape(-1, B * T)
    d_x, d_w_ih = (d_projected.T @ w_ih).view(B, T, D), d_projected @ x.reshape(B * T, D)
    return d_x, d_w_ih, d_w_hh, d_b_ih, d_b_hh


def _call(name: str, state: Tensor, projected: Tensor, *arrays: Tensor) -> None:
    threads = torch.get_num_threads() if state.numel() >= PARALLEL_FROM else 1
    pointers = (ctypes.c_void_p(array.data_ptr()) for array in (projected, *arrays))
    getattr(library(), name)(Sizes(*state.shape, projected.stride(1), threads), *pointers)
