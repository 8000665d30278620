"""LocalRNN for a GPU in Triton, used only if it is asked for: nobody has yet measured whether it is faster than torch.

In plain torch each of the M steps is a product and several pointwise operations. Each operation is launched on its own
and moves B T D numbers through the GPU's memory. Here one program computes a tile of windows from the first step to the
last. The states stay in registers, in float32. The recurrent weights are read once, before the loop, and stay in shared
memory, which limits D. A product of torch has projected the inputs, because a position's projection is the same in all
of its windows. The tile's windows are neighbours, so at step i they read the projections of step i - 1, shifted by one.

The forward kernel stores the gates and states of each step. The backward kernel goes from step M to step 1. Products of
torch form the gradients of the weights. All sums have a fixed order, so every run gives the same numbers.

float32 products use three products of tf32 ("tf32x3"), which are as exact as float32, unless torch is set to less exact
products. `TRITON_INTERPRET=1`, set before this file is imported, runs the kernels on a CPU; the tests do this.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.ops.conditions import no_custom_gradient
from rtx.nn.ops.gradients import autocast_inputs, first_derivatives_only, without_autocast

WIDEST = 128  # D: a wider state does not fit the registers
ROWS = 32  # windows in a tile
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
STORED = {"rnn": 1, "gru": 4, "lstm": 4}  # arrays that the backward pass needs of a step, besides the states
SUMMED = {"rnn": 1, "gru": 2, "lstm": 4}  # gates, from the first, that see only the sum of input and product


def obstacle(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str) -> str | None:
    """Return why the kernels cannot handle these arguments, or None if they can."""
    reason = no_custom_gradient(x, w_ih, w_hh, b_ih, b_hh)
    if reason:
        return reason
    if not x.is_cuda and os.environ.get("TRITON_INTERPRET") != "1":
        return f"it runs on a CUDA device, and x is on {x.device}"
    dtype, D = autocast_inputs(x[:0])[0].dtype, x.shape[2]
    if dtype not in (torch.float32, torch.bfloat16):
        return f"it is written for float32 and bfloat16, and x is {dtype}"
    if D > WIDEST:
        return f"it keeps the state in registers up to d_model = {WIDEST}, and this is {D}"
    if not x.is_cuda:
        return None
    # a float32 weight is stored as two numbers of tf32, its leading digits and the rest
    width, numbers = _width(D), 2 if dtype == torch.float32 else 1
    needed = (GATES[cell] * width * width * numbers + (STORED[cell] + 1) * ROWS * width) * dtype.itemsize
    device: Any = torch.cuda.get_device_properties(x.device)
    if needed <= device.shared_memory_per_block_optin:
        return None
    available = device.shared_memory_per_block_optin >> 10
    return f"its weights need {needed >> 10} KiB of shared memory, and this device has {available} KiB"


def triton_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """Return the last hidden state of every window."""
    out: Tensor = _LocalRNN.apply(*autocast_inputs(x, w_ih, w_hh, b_ih, b_hh), window, cell)
    return out


class _LocalRNN(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
    ) -> Tensor:
        (B, T, D), M, summed = x.shape, window, SUMMED[cell] * x.shape[2]
        # W x + b of the padded sequences, (B, M-1+T, G), with both biases where they only add up
        projected = F.linear(F.pad(x, (0, 0, M - 1, 0)), w_ih, b_ih + F.pad(b_hh[:summed], (0, len(b_hh) - summed)))
        out, stored = x.new_empty(B, T, D), x.new_empty(M, B * T, STORED[cell] * D)
        states = x.new_empty(M, B * T, D)
        memories = torch.empty_like(states, dtype=torch.float32) if cell == "lstm" else states
        last_bias, kept = b_hh[-D:].contiguous(), (stored, states, memories)
        with _device(x):
            forward_kernel[(triton.cdiv(B * T, ROWS),)](
                projected, w_hh.contiguous(), last_bias, out, *kept, B * T, T, M, **_options(D, cell)
            )
        ctx.save_for_backward(x, w_ih, w_hh, *kept)
        ctx.window, ctx.cell = window, cell
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, w_ih, w_hh, stored, states, memories), M, cell = ctx.saved_tensors, ctx.window, ctx.cell
        first_derivatives_only("local_rnn", gradients)
        (B, T, D), G, summed = x.shape, len(w_hh), SUMMED[cell] * x.shape[2]
        stored = stored.clone()  # the kernel overwrites it, and the graph may be used again
        with _device(x):
            backward_kernel[(triton.cdiv(B * T, ROWS),)](
                w_hh.contiguous(), gradients[0].contiguous(), stored, states, memories, B * T, M, **_options(D, cell)
            )
        # The gates' gradients have replaced the gates. The input has the same ones, except for a GRU's last gate.
        of_input = torch.cat([stored[..., :summed], stored[..., summed + stored.shape[2] - G :]], 2).view(M, B, T, G)
        d_projected = x.new_zeros(B, M - 1 + T, G, dtype=torch.float32)
        for i in range(M):
            d_projected[:, i : i + T] += of_input[i]
        padded, d_flat, d_gates = F.pad(x, (0, 0, M - 1, 0)), d_projected.to(x.dtype).flatten(0, 1), stored[..., :G]
        d_x = (d_flat @ w_ih).view_as(padded)[:, M - 1 :]
        d_w_ih = d_flat.T @ padded.flatten(0, 1)
        d_w_hh = d_gates[1:].flatten(0, 1).T @ states[1:].flatten(0, 1)
        d_b_ih = d_flat.sum(0)
        d_b_hh = torch.cat([d_b_ih[:summed], d_gates[..., summed:].sum((0, 1))])
        return d_x, d_w_ih, d_w_hh, d_b_ih, d_b_hh, None, None


def _options(D: int, cell: str) -> dict[str, Any]:
    precision = "tf32" if getattr(torch.backends.cuda.matmul, "fp32_precision", "ieee") == "tf32" else "tf32x3"
    sizes = {"D": D, "CELL": cell, "GATES": GATES[cell], "STORED": STORED[cell], "WIDTH": _width(D), "ROWS": ROWS}
    return sizes | {"PRECISION": precision, "num_warps": 4 if D <= 32 else 8, "num_stages": 1}


def _width(D: int) -> int:
    """Return the width of a tile: Triton needs a power of two, and its products at least 16."""
    return max(16, 1 << (D - 1).bit_length())


def _device(x: Tensor) -> AbstractContextManager[object]:
    """Launch kernels on the device of `x`: Triton uses the current one."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


@triton.jit
def sigmoid(v: tl.tensor) -> tl.tensor:
    """1 / (1 + e^-v)."""
    return 1.0 / (1.0 + tl.exp(-v))


@triton.jit
def tanh(v: tl.tensor) -> tl.tensor:
    """Triton has no tanh of its own; the error of this one is about 1e-7."""
    return 2.0 * sigmoid(2.0 * v) - 1.0


@triton.jit
def load(place: tl.tensor, rows: tl.tensor, real: tl.tensor, D: tl.constexpr, WIDTH: tl.constexpr) -> tl.tensor:
    """Load D numbers from each place + rows, in float32; zeros beyond D and in rows that are not real."""
    column = tl.arange(0, WIDTH)[None, :]
    return tl.load(place + rows[:, None] + column, mask=real[:, None] & (column < D), other=0.0).to(tl.float32)


@triton.jit
def store(
    place: tl.tensor, v: tl.tensor, rows: tl.tensor, real: tl.tensor, D: tl.constexpr, WIDTH: tl.constexpr
) -> None:
    """Store a tile in the dtype of its place."""
    column = tl.arange(0, WIDTH)[None, :]
    tl.store(place + rows[:, None] + column, v.to(place.dtype.element_ty), mask=real[:, None] & (column < D))


@triton.jit
def load_weights(w_hh: tl.tensor, D: tl.constexpr, GATES: tl.constexpr, WIDTH: tl.constexpr) -> tl.tuple:
    """Load the matrix of each gate, (D, D), filled up with zeros."""
    row, column = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    tiles: tl.tuple = ()
    for g in tl.static_range(GATES):
        tiles = tiles + (tl.load(w_hh + (g * D + row) * D + column, mask=(row < D) & (column < D), other=0.0),)
    return tiles


@triton.jit
def forward_kernel(
    projected: tl.tensor,  # (B, M-1+T, G)
    w_hh: tl.tensor,  # (G, D)
    bias: tl.tensor,  # (D,): b_hh of the last gate, which a GRU needs
    out: tl.tensor,  # (B, T, D)
    stored: tl.tensor,  # (M, N, STORED · D): the gates of each step
    states: tl.tensor,  # (M, N, D): h before each step
    memories: tl.tensor,  # (M, N, D): c before each step, of an LSTM
    N: int,  # B T, the number of windows
    T: int,
    M: int,
    D: tl.constexpr, CELL: tl.constexpr, GATES: tl.constexpr, STORED: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """Program j computes the windows j ROWS … (j + 1) ROWS - 1."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)
    real = row < N - first
    # window n of sequence b begins at row n + b (M - 1) of the padded projections
    begins = (first + row + (first + row) // T * (M - 1)) * (GATES * D)
    weights = load_weights(w_hh, D, GATES, WIDTH)
    last_bias = tl.load(bias + tl.arange(0, WIDTH), mask=tl.arange(0, WIDTH) < D, other=0.0).to(tl.float32)[None, :]
    h = tl.zeros((ROWS, WIDTH), tl.float32)
    c = h
    for i in range(M):
        at = (tl.cast(i, tl.int64) * N + first + row) * D
        store(states, h, at, real, D, WIDTH)
        if CELL == "lstm":
            store(memories, c, at, real, D, WIDTH)
        x: tl.tuple = ()
        a: tl.tuple = ()
        for g in tl.static_range(GATES):
            w = weights[g]
            x = x + (load(projected + g * D, begins + i * (GATES * D), real, D, WIDTH),)
            a = a + (tl.dot(h.to(w.dtype), w.trans(), input_precision=PRECISION),)
        # Eq. (2)-(3), with the equations of `rtx.nn.recurrent`
        if CELL == "rnn":
            h = tanh(x[0] + a[0])
            gates: tl.tuple = (h,)
        elif CELL == "gru":
            r, z, a_n = sigmoid(x[0] + a[0]), sigmoid(x[1] + a[1]), a[2] + last_bias
            n = tanh(x[2] + r * a_n)
            h = n + z * (h - n)
            gates = (r, z, a_n, n)
        else:
            i_gate, f = sigmoid(x[0] + a[0]), sigmoid(x[1] + a[1])
            g_gate, o = tanh(x[2] + a[2]), sigmoid(x[3] + a[3])
            c = f * c + i_gate * g_gate
            h = o * tanh(c)
            gates = (i_gate, f, g_gate, o)
        for g in tl.static_range(STORED):
            store(stored + g * D, gates[g], at * STORED, real, D, WIDTH)
    store(out, h, (first + row) * D, real, D, WIDTH)


@triton.jit
def backward_kernel(
    w_hh: tl.tensor,  # (G, D)
    d_out: tl.tensor,  # (B, T, D)
    stored: tl.tensor,  # (M, N, STORED · D): the gates, which their gradients replace
    states: tl.tensor,  # (M, N, D)
    memories: tl.tensor,  # (M, N, D)
    N: int,
    M: int,
    D: tl.constexpr, CELL: tl.constexpr, GATES: tl.constexpr, STORED: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """Program j computes the same windows as in the forward kernel.

    The stored gradients are those of the recurrent products, and for a GRU also that of the input of its last gate.
    """
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)
    real = row < N - first
    weights = load_weights(w_hh, D, GATES, WIDTH)
    d_h = load(d_out, (first + row) * D, real, D, WIDTH)
    d_c = tl.zeros((ROWS, WIDTH), tl.float32)
    for back in range(M):
        at = (tl.cast(M - 1 - back, tl.int64) * N + first + row) * D
        h = load(states, at, real, D, WIDTH)
        v: tl.tuple = ()
        for g in tl.static_range(STORED):
            v = v + (load(stored + g * D, at * STORED, real, D, WIDTH),)
        tl.debug_barrier()  # all threads must have read the gates before one overwrites them
        if CELL == "rnn":
            d: tl.tuple = (d_h * (1 - v[0] * v[0]),)
            d_h = tl.zeros_like(d_h)
        elif CELL == "gru":
            r, z, a_n, n = v[0], v[1], v[2], v[3]
            d_n = d_h * (1 - z) * (1 - n * n)
            d = (d_n * a_n * r * (1 - r), d_h * (h - n) * z * (1 - z), d_n * r, d_n)
            d_h = d_h * z
        else:
            i_gate, f, g_gate, o = v[0], v[1], v[2], v[3]
            c = load(memories, at, real, D, WIDTH)
            s = tanh(f * c + i_gate * g_gate)
            d_c += d_h * o * (1 - s * s)
            d_i, d_f = d_c * g_gate * i_gate * (1 - i_gate), d_c * c * f * (1 - f)
            d = (d_i, d_f, d_c * i_gate * (1 - g_gate * g_gate), d_h * s * o * (1 - o))
            d_c = d_c * f
            d_h = tl.zeros_like(d_h)
        for g in tl.static_range(STORED):
            store(stored + g * D, d[g], at * STORED, real, D, WIDTH)
        for g in tl.static_range(GATES):  # dh = … + Σ_g W_gᵀ da_g
            d_h = tl.dot(d[g].to(weights[g].dtype), weights[g], d_h, input_precision=PRECISION)
