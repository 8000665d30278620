"""LocalRNN with the gates in C++ and a backward pass of its own; the matrix products are torch's.

Arrays have features first, (D, B, T), because each gate is then one piece of memory. `native.cpp` does all that is
between two products in one pass over memory.
"""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.ops.build import library
from rtx.nn.ops.gradients import autocast_inputs, needs_torch, torch_gradients, without_autocast
from rtx.nn.ops.local_rnn.torch import torch_local_rnn
from rtx.nn.recurrent import CELLS, CellState

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
    """What the backward pass needs of one step: the gates (G, B, T), one more array, and the state after the step."""

    gates: Tensor
    extra: tuple[Tensor, ...]
    state: CellState


class NativeCell(NamedTuple):
    """One step of a cell in C++, forward and backward.

    Args:
        name: "rnn", "gru" or "lstm".
        summed: the number of gates, from the first, that see only the sum of input and recurrent product. Their two
            biases can be added at once. A GRU's last gate is different: its reset gate multiplies the product.
        forward: (recurrent product, projected input, bias of the last gate, state) to the step. The product's memory
            is reused for the gates.
        backward: (gradient of the state after, step, state before, gradient of the input) to the gradients of the
            product, of h before (without the product's part, None for zero) and of c before. Adds to the gradient of
            the input.
    """

    name: str
    summed: int
    forward: Callable[[Tensor, Tensor, Tensor, CellState], Step]
    backward: Callable[[CellState, Step, CellState, Tensor], tuple[Tensor, Tensor | None, CellState]]


def native_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """Return the last hidden state of every window."""
    x, *weights = autocast_inputs(x, w_ih, w_hh, b_ih, b_hh)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, *weights))
    run = _LocalRNN.apply if learns else _without_gradient
    groups = x.split(max(1, GROUP // (x.shape[1] * x.shape[2])))
    parts: list[Tensor] = [run(group, *weights, window, CELL[cell]) for group in groups]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@without_autocast
def _without_gradient(x: Tensor, *weights_and_more: Any) -> Tensor:
    for step in _steps(x, *weights_and_more):
        last = step.state[0]
    return last.permute(1, 2, 0).contiguous()


class _LocalRNN(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: NativeCell
    ) -> Tensor:
        ctx.window, ctx.cell = window, cell
        if x.shape[2] < STORE_FROM:
            ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh)
            return _without_gradient(x, w_ih, w_hh, b_ih, b_hh, window, cell)
        steps = list(_steps(x, w_ih, w_hh, b_ih, b_hh, window, cell))
        stored = (array for step in steps for array in (step.gates, *step.extra, *step.state))
        ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh, *stored)
        return steps[-1].state[0].permute(1, 2, 0).contiguous()

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, w_ih, w_hh, b_ih, b_hh, *stored = ctx.saved_tensors
        if needs_torch(gradients):
            return torch_gradients(torch_local_rnn, (x, w_ih, w_hh, b_ih, b_hh, ctx.window, ctx.cell.name), gradients)
        again = () if stored else _steps(x, w_ih, w_hh, b_ih, b_hh, ctx.window, ctx.cell)
        steps = _stored_steps(stored, ctx.window, ctx.cell) if stored else list(again)
        return *_gradients(gradients[0], x, w_ih, w_hh, b_hh, steps, ctx.cell), None, None


def _stored_steps(stored: list[Tensor], window: int, cell: NativeCell) -> list[Step]:
    """Restore the steps from the flat list of their arrays."""
    size, parts = len(stored) // window, CELLS[cell.name].parts
    each = (stored[i : i + size] for i in range(0, len(stored), size))
    return [Step(one[0], tuple(one[1 : size - parts]), tuple(one[size - parts :])) for one in each]


def _steps(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: NativeCell
) -> Iterator[Step]:
    """Advance all windows by one position at a time; states are (D, B, T)."""
    B, T, D = x.shape
    summed = cell.summed * D
    bias = (b_ih + F.pad(b_hh[:summed], (0, len(b_hh) - summed)))[:, None, None]
    last_bias = b_hh[summed:].contiguous()
    projected = x.new_empty(len(w_ih), B, window - 1 + T)
    projected[..., : window - 1] = bias  # the projection of a zero vector
    torch.add((w_ih @ x.reshape(B * T, D).T).view(-1, B, T), bias, out=projected[..., window - 1 :])
    state = tuple(x.new_zeros(D, B, T) for _ in range(CELLS[cell.name].parts))
    for i in range(window):
        # Eq. (2)-(3)
        product = w_hh @ state[0].flatten(1) if i else x.new_zeros(len(w_hh), B * T)
        step = cell.forward(product.view(-1, B, T), projected[..., i : i + T], last_bias, state)
        state = step.state
        yield step


def _gradients(
    d_out: Tensor, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_hh: Tensor, steps: list[Step], cell: NativeCell
) -> tuple[Tensor, ...]:
    """Return the gradients of x, w_ih, w_hh, b_ih and b_hh: from the last step of the windows to the first."""
    (B, T, D), M, summed = x.shape, len(steps), cell.summed * x.shape[2]
    zero = tuple(torch.zeros_like(part) for part in steps[0].state)
    d_input = x.new_zeros(len(w_ih), B, M - 1 + T)
    d_w_hh, d_b_hh = torch.zeros_like(w_hh), torch.zeros_like(b_hh)
    d_h, d_rest = d_out.permute(2, 0, 1).contiguous(), zero[1:]
    for i in reversed(range(M)):
        before = steps[i - 1].state if i else zero
        d_gates, direct, d_rest = cell.backward((d_h, *d_rest), steps[i], before, d_input[..., i : i + T])
        d_product = d_gates.flatten(1)
        d_b_hh[summed:] += d_product[summed:].sum(1)
        if i:
            d_w_hh.addmm_(d_product, before[0].flatten(1).T)
            d_h = w_hh.T @ d_product if direct is None else direct.flatten(1).addmm_(w_hh.T, d_product)
            d_h = d_h.view(D, B, T)
    d_b_ih = d_input.sum((1, 2))
    d_b_hh[:summed] = d_b_ih[:summed]
    d_projected = d_input[..., M - 1 :].reshape(-1, B * T)
    d_x, d_w_ih = (d_projected.T @ w_ih).view(B, T, D), d_projected @ x.reshape(B * T, D)
    return d_x, d_w_ih, d_w_hh, d_b_ih, d_b_hh


def _call(name: str, state: Tensor, inputs: Tensor, *arrays: Tensor) -> None:
    threads = torch.get_num_threads() if state.numel() >= PARALLEL_FROM else 1
    pointers = (ctypes.c_void_p(array.data_ptr()) for array in arrays)
    getattr(library(), name)(Sizes(*state.shape, inputs.stride(1), threads), *pointers)


def _rnn_forward(product: Tensor, projected: Tensor, bias: Tensor, state: CellState) -> Step:
    _call("rnn_forward", state[0], projected, product, projected)
    return Step(product, (), (product,))


def _rnn_backward(
    d_state: CellState, step: Step, before: CellState, d_input: Tensor
) -> tuple[Tensor, Tensor | None, CellState]:
    d_gates = torch.empty_like(step.gates)
    _call("rnn_backward", before[0], d_input, *d_state, step.gates, d_gates, d_input)
    return d_gates, None, ()


def _gru_forward(product: Tensor, projected: Tensor, bias: Tensor, state: CellState) -> Step:
    n, h = torch.empty_like(state[0]), torch.empty_like(state[0])
    _call("gru_forward", h, projected, product, projected, bias, *state, n, h)
    return Step(product, (n,), (h,))


def _gru_backward(
    d_state: CellState, step: Step, before: CellState, d_input: Tensor
) -> tuple[Tensor, Tensor | None, CellState]:
    d_gates, direct = torch.empty_like(step.gates), torch.empty_like(before[0])
    _call("gru_backward", direct, d_input, *d_state, step.gates, *step.extra, *before, d_gates, d_input, direct)
    return d_gates, direct, ()


def _lstm_forward(product: Tensor, projected: Tensor, bias: Tensor, state: CellState) -> Step:
    tanh_c, h, c = (torch.empty_like(state[1]) for _ in range(3))
    _call("lstm_forward", h, projected, product, projected, state[1], tanh_c, h, c)
    return Step(product, (tanh_c,), (h, c))


def _lstm_backward(
    d_state: CellState, step: Step, before: CellState, d_input: Tensor
) -> tuple[Tensor, Tensor | None, CellState]:
    d_gates, d_c = torch.empty_like(step.gates), torch.empty_like(before[1])
    _call("lstm_backward", d_c, d_input, *d_state, step.gates, *step.extra, before[1], d_gates, d_input, d_c)
    return d_gates, None, (d_c,)


CELL = {
    "rnn": NativeCell("rnn", 1, _rnn_forward, _rnn_backward),
    "gru": NativeCell("gru", 2, _gru_forward, _gru_backward),
    "lstm": NativeCell("lstm", 4, _lstm_forward, _lstm_backward),
}
