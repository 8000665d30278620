"""One step of all windows of a LocalRNN, and its gradient: what stands between two products of torch's.

For widths whose weights the chip cannot hold. There the products are large enough for cuBLAS; the rest, half a dozen
operations that each read and write the GPU's memory, is one kernel here. Its arithmetic is that of `cells`, as in the
kernels that keep a state on the chip; its arrays are those of `rtx.nn.kernels.cells`, features first, (D, B, T).
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from rtx.nn.kernels.cells import FUSED_CELLS, Change, FusedCell, Kept
from rtx.nn.kernels.triton import cells
from rtx.nn.kernels.triton.launch import on
from rtx.nn.kernels.triton.plan import GATES, KEPT
from rtx.nn.recurrent import State

BLOCK = 1024  # numbers of a state that one program works on


@triton.jit
def forward_kernel(
    gates: tl.tensor,  # (G · D, B, T): the recurrent products, which become what is kept
    inputs: tl.tensor,  # (G · D, B, T): rows of a longer array, `stride` numbers apart
    bias: tl.tensor,  # (D,): of a GRU's last gate, where input and state are not just added
    h: tl.tensor,  # (D, B, T), as all that follow
    c: tl.tensor,  # of an LSTM
    candidate: tl.tensor,  # of a GRU: n
    next_h: tl.tensor,
    next_c: tl.tensor,
    N: int,  # D B T
    B: int,
    T: int,
    stride: int,
    CELL: tl.constexpr,
    GATES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Program j computes the numbers j BLOCK … (j + 1) BLOCK - 1 of the state."""
    first, i, real, row, source = places(N, T, stride, BLOCK)
    part, input_part = tl.cast(N, tl.int64), tl.cast(N // T, tl.int64) * stride  # numbers of a gate
    a: tl.tuple = ()
    x: tl.tuple = ()
    for g in tl.static_range(GATES):
        product = load(gates + first + g * part, i, real)
        if CELL == "gru" and g == 2:
            product += load(bias, row // B, real)
        a, x = a + (product,), x + (load(inputs + g * input_part, source, real),)
    h_next, c_next, kept = cells.forward(x, a, load(h + first, i, real), load(c + first, i, real), CELL)
    tl.debug_barrier()  # every thread has read the products before one overwrites them
    for g in tl.static_range(GATES):
        store(gates + first + g * part, i, real, kept[g])
    if CELL != "rnn":  # whose state is what is kept
        store(next_h + first, i, real, h_next)
    if CELL == "gru":
        store(candidate + first, i, real, kept[3])
    if CELL == "lstm":
        store(next_c + first, i, real, c_next)


@triton.jit
def backward_kernel(
    d_h: tl.tensor,  # of the state after the step
    d_c: tl.tensor,
    gates: tl.tensor,  # what was kept
    candidate: tl.tensor,
    h: tl.tensor,  # the state before the step
    c: tl.tensor,
    d_gates: tl.tensor,  # of the recurrent products
    d_inputs: tl.tensor,  # to which those of the inputs are added
    through: tl.tensor,  # of h, the product's share apart: of a GRU
    d_c_before: tl.tensor,
    N: int,
    T: int,
    stride: int,
    CELL: tl.constexpr,
    GATES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """The gradients of the same numbers."""
    first, i, real, _, source = places(N, T, stride, BLOCK)
    part, input_part = tl.cast(N, tl.int64), tl.cast(N // T, tl.int64) * stride
    kept: tl.tuple = ()
    for g in tl.static_range(GATES):
        kept = kept + (load(gates + first + g * part, i, real),)
    if CELL == "gru":
        kept = kept + (load(candidate + first, i, real),)
    d_next = load(d_h + first, i, real), load(d_c + first, i, real)
    before = load(h + first, i, real), load(c + first, i, real)
    found, direct, d_memory = cells.backward(d_next[0], d_next[1], kept, before[0], before[1], CELL)
    for g in tl.static_range(GATES):
        store(d_gates + first + g * part, i, real, found[g])
        of_input = found[3] if CELL == "gru" and g == 2 else found[g]  # r stands between the two
        place = d_inputs + g * input_part
        store(place, source, real, load(place, source, real) + of_input)
    if CELL == "gru":
        store(through + first, i, real, direct)
    if CELL == "lstm":
        store(d_c_before + first, i, real, d_memory)


@triton.jit
def places(N: int, T: int, stride: int, BLOCK: tl.constexpr) -> tl.tuple:
    """Where a program's numbers begin, they from there, which are real; their rows of T, and where inputs stand."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    i = tl.arange(0, BLOCK)
    t = (first % T).to(tl.int32) + i  # only whole tiles are counted by long numbers: these are slow to divide
    row = first // T + t // T
    return first, i, i < N - first, row, row * stride + t % T


@triton.jit
def load(place: tl.tensor, i: tl.tensor, real: tl.tensor) -> tl.tensor:
    """Those numbers of an array, in float32."""
    return tl.load(place + i, mask=real, other=0.0).to(tl.float32)


@triton.jit
def store(place: tl.tensor, i: tl.tensor, real: tl.tensor, numbers: tl.tensor) -> None:
    """The other way round, in the dtype that is there."""
    tl.store(place + i, numbers.to(place.dtype.element_ty), mask=real)


def _launch(kernel: Any, cell: str, state: Tensor, inputs: Tensor, arrays: tuple[Tensor, ...], *sizes: int) -> None:
    N = state.numel()
    with on(state):
        kernel[(triton.cdiv(N, BLOCK),)](
            *arrays, N, *sizes, state.shape[2], inputs.stride(1), CELL=cell, GATES=GATES[cell], BLOCK=BLOCK
        )


def _cell(name: str) -> FusedCell:
    def forward(from_state: Tensor, from_input: Tensor, bias: Tensor, state: State) -> tuple[Kept, State]:
        after = (from_state,) if name == "rnn" else tuple(torch.empty_like(part) for part in state)
        more = (torch.empty_like(state[0]),) * (KEPT[name] - GATES[name])
        candidate = (more or state)[0]  # an array that a cell does not have is neither read nor written
        arrays = (from_state, from_input, bias, state[0], state[-1], candidate, after[0], after[-1])
        _launch(forward_kernel, name, state[0], from_input, arrays, state[0].shape[1])
        return Kept(from_state, more), after

    def backward(d_next: State, kept: Kept, state: State, d_input: Tensor) -> Change:
        d_gates, before = torch.empty_like(kept.gates), tuple(torch.empty_like(part) for part in state)
        candidate = (kept.more or state)[0]
        arrays = (d_next[0], d_next[-1], kept.gates, candidate, state[0], state[-1], d_gates, d_input)
        _launch(backward_kernel, name, state[0], d_input, (*arrays, before[0], before[-1]))
        return Change(d_gates, {"rnn": (None,), "gru": before, "lstm": (None, before[-1])}[name])

    return FUSED_CELLS[name]._replace(more=KEPT[name] - GATES[name], forward=forward, backward=backward)


STEP_CELLS = {name: _cell(name) for name in GATES}
"""By the name every `cell=` argument takes."""
