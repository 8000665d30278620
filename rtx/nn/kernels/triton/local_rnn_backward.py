"""LocalRNN backward in two kernels: each window from its last step to its first; then, for each position, a sum.

The forward kernel has just run once more and left each step's gates and the state before it. The first kernel here
puts the gradients of the gates where the gates were; a product of torch's forms that of the weights from them. A
position is read by up to M windows, so the gradient of its projection is a sum of M terms: the second kernel adds
them in one order, always the same, without atomic additions, whose order changes from run to run.
"""

import triton
import triton.language as tl

from rtx.nn.kernels.triton import cells
from rtx.nn.kernels.triton.tiles import load, load_gates, load_weights, store, zero_state


@triton.jit
def backward_kernel(
    w_hh: tl.tensor,  # (G · D, D)
    d_out: tl.tensor,  # (B, T, D)
    kept: tl.tensor,  # (M, N, KEPT · D): gates, whose gradients are put in their place
    states: tl.tensor,  # (M-1, N, D): before step 1, 2, … M - 1
    memories: tl.tensor,  # (M-1, N, D), of an LSTM
    N: int,
    M: int,
    D: tl.constexpr,
    CELL: tl.constexpr,
    GATES: tl.constexpr,
    KEPT: tl.constexpr,
    SIZES: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Program j computes the windows j ROWS … (j + 1) ROWS - 1, as it did forward."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)
    real = row < N - first
    step = tl.cast(N, tl.int64) * D  # from one step's states to the next one's
    kept += first * (KEPT * D) + (M - 1) * step * KEPT  # the last step
    states, memories = states + first * D + (M - 1) * step, memories + first * D + (M - 1) * step  # behind the last
    weights = load_weights(w_hh, D, GATES, SIZES, TURN=True)

    zero = zero_state(ROWS, SIZES)
    d_h, d_c = load_state(d_out + first * D, row, real, D, SIZES), zero
    for _ in range(1, M):
        states, memories = states - step, memories - step
        h = load_state(states, row, real, D, SIZES)
        c = load_state(memories, row, real, D, SIZES) if CELL == "lstm" else zero
        d_h, d_c = retreat(d_h, d_c, h, c, weights, kept, row, real, D, CELL, GATES, KEPT, SIZES, PRECISION, False)
        kept -= step * KEPT
    retreat(d_h, d_c, zero, zero, weights, kept, row, real, D, CELL, GATES, KEPT, SIZES, PRECISION, True)


@triton.jit
def load_state(place: tl.tensor, row: tl.tensor, real: tl.tensor, D: tl.constexpr, SIZES: tl.constexpr) -> tl.tuple:
    """All parts of a state."""
    found: tl.tuple = ()
    for p in tl.static_range(len(SIZES)):
        found = found + (load(place, row * D, real, p, D, SIZES),)
    return found


@triton.jit
def retreat(
    d_h: tl.tuple,
    d_c: tl.tuple,
    h: tl.tuple,
    c: tl.tuple,
    weights: tl.tuple,
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
    """From the gradients of the state after a step to those of the state before it; before the first is none."""
    P: tl.constexpr = len(SIZES)
    d_gates: tl.tuple = ()
    before_h: tl.tuple = ()
    before_c: tl.tuple = ()
    for p in tl.static_range(P):
        gates = load_gates(kept, row * (KEPT * D), real, p, D, KEPT, SIZES)
        tl.debug_barrier()  # every thread has read the gates before one puts a gradient in their place
        found, direct, d_memory = cells.backward(d_h[p], d_c[p], gates, h[p], c[p], CELL)
        for g in tl.static_range(KEPT):
            store(kept + g * D, found[g], row * (KEPT * D), real, p, D, SIZES)
        d_gates, before_h, before_c = d_gates + (found,), before_h + (direct,), before_c + (d_memory,)
    through: tl.tuple = ()
    for k in tl.static_range(P):
        total = before_h[k]
        if not FIRST:
            for p in tl.static_range(P):
                for g in tl.static_range(GATES):  # dh = … + Σ W_gᵀ da_g
                    w = weights[(g * P + p) * P + k]
                    total = tl.dot(d_gates[p][g].to(w.dtype), w, total, input_precision=PRECISION)
        through = through + (total,)
    return through, before_c


@triton.jit
def collect_kernel(
    d_kept: tl.tensor,  # (M, N, KEPT · D): what the kernel above left
    d_projected: tl.tensor,  # (B, M-1+T, G · D)
    B: int,
    T: int,
    M: int,
    WIDTH: tl.constexpr,  # G D
    KEPT_WIDTH: tl.constexpr,  # KEPT D
    SHARED: tl.constexpr,  # so many columns have the same gradient for input and state; the others' stand D behind
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """The sums over the windows. Position s, zero vectors counted, is read at step i of the one that began at s - i."""
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    source = tl.where(column < SHARED, column, column + KEPT_WIDTH - WIDTH)
    s, b = place % (T + M - 1), place // (T + M - 1)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for i in range(M):
        t = s - i
        real = ((t >= 0) & (t < T) & (b < B))[:, None] & (column < WIDTH)
        n = (i * B + b) * T + t
        total += tl.load(d_kept + n[:, None] * KEPT_WIDTH + source, mask=real, other=0.0).to(tl.float32)
    real = (b < B)[:, None] & (column < WIDTH)
    tl.store(d_projected + place[:, None] * WIDTH + column, total.to(d_projected.dtype.element_ty), mask=real)
