"""LocalRNN forward in one kernel: the hidden states of a tile of windows stay in registers through their M steps.

Wang et al. (2019), R-Transformer, Eq. 2-3; the same loop as `rtx.nn.kernels.local_rnn.window_states`.
"""

import triton
import triton.language as tl

from rtx.nn.kernels.triton import cells
from rtx.nn.kernels.triton.tiles import (
    columns,
    load_gates,
    load_weights,
    recurrent_product,
    store,
    zero_state,
    zero_tile,
)


@triton.jit
def forward_kernel(
    projected: tl.tensor,  # (B, M-1+T, G · D): W x + b of every position, and of M - 1 zero vectors before the first
    w_hh: tl.tensor,  # (G · D, D)
    bias: tl.tensor,  # (D,): of a GRU's last gate, where input and state are not just added
    out: tl.tensor,  # (B, T, D)
    kept: tl.tensor,  # (M, N, KEPT · D), for the way back
    states: tl.tensor,  # (M-1, N, D), likewise
    memories: tl.tensor,  # (M-1, N, D), likewise, of an LSTM
    N: int,  # B T, the windows
    T: int,
    M: int,
    D: tl.constexpr,
    CELL: tl.constexpr,
    GATES: tl.constexpr,
    KEPT: tl.constexpr,  # 0: nothing is kept
    SIZES: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,  # windows of a tile
) -> None:
    """Program j computes the windows j ROWS … (j + 1) ROWS - 1."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)
    real = row < N - first
    # A sequence's T windows begin at its positions 0 … T - 1, zero vectors counted; the next one's, M - 1 further on.
    # Only the place of the tile is a long number: 32 bits for each of its rows take half the registers.
    before = first // T
    rows = (row + (M - 1) * ((first + row) // T - before).to(tl.int32)) * (GATES * D)
    projected += (first + before * (M - 1)) * (GATES * D)
    out, kept = out + first * D, kept + first * (KEPT * D)
    states, memories = states + first * D, memories + first * D
    step = tl.cast(N, tl.int64) * D  # from one step's states to the next one's
    weights = load_weights(w_hh, D, GATES, SIZES, TURN=False)

    h = zero_state(ROWS, SIZES)
    c = h
    h, c = advance(
        h, c, weights, projected, rows, bias, kept, row, real, D, CELL, GATES, KEPT, SIZES, PRECISION, FIRST=True
    )
    for _ in range(1, M):
        if KEPT:
            keep(states, memories, h, c, row, real, D, CELL, SIZES)
            states, memories, kept = states + step, memories + step, kept + step * KEPT
        projected += GATES * D  # windows advance together: step i reads one position further on
        h, c = advance(
            h, c, weights, projected, rows, bias, kept, row, real, D, CELL, GATES, KEPT, SIZES, PRECISION, FIRST=False
        )
    if not KEPT:
        for p in tl.static_range(len(SIZES)):
            store(out, h[p], row * D, real, p, D, SIZES)


@triton.jit
def advance(
    h: tl.tuple,
    c: tl.tuple,
    weights: tl.tuple,
    projected: tl.tensor,
    rows: tl.tensor,
    bias: tl.tensor,
    kept: tl.tensor,
    row: tl.tensor,
    real: tl.tensor,
    D: tl.constexpr,
    CELL: tl.constexpr,
    GATES: tl.constexpr,
    KEPT: tl.constexpr,
    SIZES: tl.constexpr,
    PRECISION: tl.constexpr,
    FIRST: tl.constexpr,
) -> tl.tuple:
    """The state after one more position. At the first, it is zero before, and there are no products."""
    after_h: tl.tuple = ()
    after_c: tl.tuple = ()
    for p in tl.static_range(len(SIZES)):
        a: tl.tuple = ()
        for g in tl.static_range(GATES):
            if FIRST:
                product = zero_tile(h[0].shape[0], SIZES[p])
            else:
                product = recurrent_product(h, weights, g, p, SIZES, PRECISION)
            if CELL == "gru" and g == 2:
                product += tl.load(bias + columns(p, SIZES), mask=columns(p, SIZES) < D, other=0.0).to(tl.float32)
            a = a + (product,)
        x = load_gates(projected, rows, real, p, D, GATES, SIZES)
        h_p, c_p, gates = cells.forward(x, a, h[p], c[p], CELL)
        for g in tl.static_range(KEPT):
            store(kept + g * D, gates[g], row * (KEPT * D), real, p, D, SIZES)
        after_h, after_c = after_h + (h_p,), after_c + (c_p,)
    return after_h, after_c


@triton.jit
def keep(
    states: tl.tensor,
    memories: tl.tensor,
    h: tl.tuple,
    c: tl.tuple,
    row: tl.tensor,
    real: tl.tensor,
    D: tl.constexpr,
    CELL: tl.constexpr,
    SIZES: tl.constexpr,
) -> None:
    """Put a state where the way back finds it."""
    for p in tl.static_range(len(SIZES)):
        store(states, h[p], row * D, real, p, D, SIZES)
        if CELL == "lstm":
            store(memories, c[p], row * D, real, p, D, SIZES)
