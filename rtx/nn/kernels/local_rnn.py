"""LocalRNN's windows, all at once: by torch's own gradients, and as one function with its gradient written out.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2-3. The loops of `rtx.nn.naive.local_rnn` are what both are held to.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn import naive
from rtx.nn.kernels.cells import FUSED_CELLS, FusedCell, Kept
from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.native.cells import NATIVE_CELLS
from rtx.nn.kernels.obstacles import no_hand_written_gradient, no_native_code
from rtx.nn.kernels.precision import autocast_inputs, without_autocast
from rtx.nn.kernels.triton.obstacles import for_tests_alone, no_local_rnn, no_steps
from rtx.nn.recurrent import CELLS, State

STATES = 2**17  # numbers in the state of the sequences that a CPU works on together, for a core's cache
# from this D on, gates are kept for the backward pass; of narrower ones, it costs little to compute them again
WIDE = 64


def window_states(
    x: Float[Tensor, "B T D"],
    w_ih: Float[Tensor, "G D"],
    w_hh: Float[Tensor, "G D"],
    b_ih: Float[Tensor, " G"],
    b_hh: Float[Tensor, " G"],
    window: int,
    cell: str,
) -> Iterator[State]:
    """The state of all windows after their first, second, … last position, (B, T, D).

    A position is in M windows, but its projection is the same in all of them: it is computed once, and step i of all
    windows reads a slice shifted by i. So there is no copy of the windows, and at the first step, where the state is
    zero, no recurrent product either.
    """
    B, T, _ = x.shape
    step = CELLS[cell].step
    pads = b_ih.expand(B, window - 1, -1)  # the projection of a zero vector
    projected = F.linear(x, w_ih, b_ih)
    projected = torch.cat([pads.to(projected.dtype), projected], 1)  # (B, M-1+T, gates · D)
    # Eq. (2)-(3): windows advance together
    state = step(projected[:, :T], b_hh, None)
    yield state
    for i in range(1, window):
        state = step(projected[:, i : i + T], F.linear(state[0], w_hh, b_hh), state)
        yield state


def torch_local_rnn(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Tensor:
    """The last hidden state of every window, by torch's own gradients."""
    hidden = x
    for state in window_states(x, w_ih, w_hh, b_ih, b_hh, window, cell):
        hidden = state[0]  # the last one stays
    return hidden


def fused_local_rnn(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Tensor:
    """The same with features first and a gradient by hand, a few sequences at a time."""
    return _in_parts(FUSED_CELLS[cell], x, w_ih, w_hh, b_ih, b_hh, window)


def native_local_rnn(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Tensor:
    """The same, with all that stands between two products in C++."""
    return _in_parts(NATIVE_CELLS[cell], x, w_ih, w_hh, b_ih, b_hh, window)


def _in_parts(
    cell: FusedCell, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int
) -> Tensor:
    x, *weights = autocast_inputs(x, w_ih, w_hh, b_ih, b_hh)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, *weights))
    run = _FusedLocalRNN.apply if learns else _without_gradient
    together = len(x) if x.is_cuda else max(1, STATES // (x.shape[1] * x.shape[2]))
    parts: list[Tensor] = [run(part, *weights, window, cell) for part in x.split(together)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@without_autocast
def _without_gradient(x: Tensor, *weights_and_more: Any) -> Tensor:
    for _, last in _advance(x, *weights_and_more):
        state = last
    return _batch_first(state)


def _batch_first(state: State) -> Float[Tensor, "B T D"]:
    return state[0].permute(1, 2, 0).contiguous()


class _FusedLocalRNN(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: FusedCell
    ) -> Tensor:
        ctx.window, ctx.cell = window, cell
        if x.shape[2] < WIDE:
            ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh)
            return _without_gradient(x, w_ih, w_hh, b_ih, b_hh, window, cell)
        steps = list(_advance(x, w_ih, w_hh, b_ih, b_hh, window, cell))
        arrays = (array for kept, state in steps for array in (kept.gates, *kept.more, *state))
        ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh, *arrays)
        return _batch_first(steps[-1][1])

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, w_ih, w_hh, b_ih, b_hh, *arrays = ctx.saved_tensors
        if only_by_torch(gradients):
            again = (x, w_ih, w_hh, b_ih, b_hh, ctx.window, ctx.cell.name)
            return gradients_again(torch_local_rnn, again, gradients)
        steps = _steps(arrays, ctx.cell) if arrays else [*_advance(x, w_ih, w_hh, b_ih, b_hh, ctx.window, ctx.cell)]
        return *_go_back(gradients[0], x, w_ih, w_hh, b_hh, steps, ctx.cell), None, None


def _steps(arrays: list[Tensor], cell: FusedCell) -> list[tuple[Kept, State]]:
    """What was kept of each position, from the flat list of it."""
    behind = 1 + cell.more  # where the state begins
    size = behind + CELLS[cell.name].parts
    steps = (arrays[i : i + size] for i in range(0, len(arrays), size))
    return [(Kept(step[0], tuple(step[1:behind])), tuple(step[behind:])) for step in steps]


def _advance(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: FusedCell
) -> Iterator[tuple[Kept, State]]:
    """What to keep of each position of all windows, and their state after it, (D, B, T)."""
    B, T, D = x.shape
    summed = cell.summed * D
    bias = (b_ih + F.pad(b_hh[:summed], (0, len(b_hh) - summed)))[:, None, None]
    last_bias = b_hh[summed:].contiguous()  # which C++ reads as it lies in memory
    from_input = x.new_empty(len(w_ih), B, window - 1 + T)
    from_input[..., : window - 1] = bias  # the projection of a zero vector
    torch.add((w_ih @ x.reshape(B * T, D).T).view(-1, B, T), bias, out=from_input[..., window - 1 :])
    state = tuple(x.new_zeros(D, B, T) for _ in range(CELLS[cell.name].parts))
    for i in range(window):
        product = w_hh @ state[0].flatten(1) if i else x.new_zeros(len(w_hh), B * T)
        kept, state = cell.forward(product.view(-1, B, T), from_input[..., i : i + T], last_bias, state)
        yield kept, state


def _go_back(
    d_out: Tensor,
    x: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_hh: Tensor,
    steps: list[tuple[Kept, State]],
    cell: FusedCell,
) -> tuple[Tensor, ...]:
    """The gradients of x, w_ih, w_hh, b_ih and b_hh."""
    (B, T, D), M, summed = x.shape, len(steps), cell.summed * x.shape[2]
    states = [tuple(torch.zeros_like(part) for part in steps[0][1]), *(state for _, state in steps)]
    d_input = x.new_zeros(len(w_ih), B, M - 1 + T)
    d_w_hh, d_b_hh = torch.zeros_like(w_hh), torch.zeros_like(b_hh)
    d_h, d_rest = d_out.permute(2, 0, 1).contiguous(), list(states[0][1:])
    for i in reversed(range(M)):
        change = cell.backward((d_h, *d_rest), steps[i][0], states[i], d_input[..., i : i + T])
        d_product = change.from_state.flatten(1)
        d_b_hh[summed:] += d_product[summed:].sum(1)
        if i:
            d_w_hh.addmm_(d_product, states[i][0].flatten(1).T)
            through, *d_rest = change.state
            d_h = w_hh.T @ d_product if through is None else through.flatten(1).addmm_(w_hh.T, d_product)
            d_h = d_h.view(D, B, T)
    d_b_ih = d_input.sum((1, 2))
    d_b_hh[:summed] = d_b_ih[:summed]
    d_projected = d_input[..., M - 1 :].reshape(-1, B * T)
    d_x, d_w_ih = (d_projected.T @ w_ih).view(B, T, D), d_projected @ x.reshape(B * T, D)
    return d_x, d_w_ih, d_w_hh, d_b_ih, d_b_hh


def triton_local_rnn(*inputs: Any) -> Tensor:
    """The same in Triton's kernels, for a GPU; see `rtx.nn.kernels.triton`."""
    from rtx.nn.kernels.triton.local_rnn import triton_local_rnn  # needs Triton

    return triton_local_rnn(*inputs)


def triton_steps_local_rnn(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Tensor:
    """The same with torch's products, and in Triton what stands between two of them."""
    from rtx.nn.kernels.triton.steps import STEP_CELLS  # needs Triton

    return _in_parts(STEP_CELLS[cell], x, w_ih, w_hh, b_ih, b_hh, window)


local_rnn = Operation(
    "local_rnn",
    {
        "triton": Kernel(triton_local_rnn, no_local_rnn, for_tests_alone),
        "triton-steps": Kernel(triton_steps_local_rnn, no_steps, for_tests_alone),
        "native": Kernel(native_local_rnn, no_native_code),
        "fused": Kernel(fused_local_rnn, no_hand_written_gradient),
        "naive": Kernel(naive.local_rnn),
        "torch": Kernel(torch_local_rnn),
    },
    optional=("naive",),
)
"""`local_rnn(x, w_ih, w_hh, b_ih, b_hh, window, cell)`: the last hidden state of the window that ends at a position."""
