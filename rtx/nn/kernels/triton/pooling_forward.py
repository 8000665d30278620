"""Feed-forward attention's sums over time in one kernel, and a second, small one that adds up what its programs found.

Raffel & Ellis (2015), Eq. 1-2; `rtx.nn.naive_pooling.context` as tiles. A score is a tanh, between -1 and 1, so that
its exponential needs no running maximum, and parts of a sequence can be summed by themselves.
"""

import triton
import triton.language as tl

from rtx.nn.kernels.triton.cells import tanh


@triton.jit
def load_layer(w: tl.tensor, F: tl.constexpr, D: tl.constexpr, INPUTS: tl.constexpr, UNITS: tl.constexpr) -> tl.tensor:
    """W_xh, transposed, with b_xh as row F, and zeros around them: (INPUTS, UNITS), both powers of two."""
    f, d = tl.arange(0, INPUTS)[:, None], tl.arange(0, UNITS)[None, :]
    return tl.load(w + f * D + d, mask=(f <= F) & (d < D), other=0.0)


@triton.jit
def load_steps(x: tl.tensor, t: tl.tensor, real: tl.tensor, F: tl.constexpr, INPUTS: tl.constexpr) -> tl.tensor:
    """The inputs at some steps, with 1 in column F, which the bias is multiplied by. What is not real is not read."""
    f = tl.arange(0, INPUTS)[None, :]
    found = tl.load(x + t[:, None] * F + f, mask=real[:, None] & (f < F), other=0.0).to(tl.float32)
    return tl.where(real[:, None] & (f == F), 1.0, found)


@triton.jit
def leaky(before: tl.tensor, LEAK: tl.constexpr) -> tl.tensor:
    """LReLU: max(v, .01) as printed, max(v, .01 v) as coded."""
    if LEAK == "printed":
        return tl.where(before < 0.01, 0.01, before)  # keeps what is no number
    else:
        return tl.where(before > 0, before, 0.01 * before)


@triton.jit
def sums_kernel(
    x: tl.tensor,  # (B, T, F)
    lengths: tl.tensor,  # (B,)
    w: tl.tensor,  # (F+1, D): W_xh transposed, b_xh
    score: tl.tensor,  # (D,): w_hc
    shift: tl.tensor,  # (1,): b_hc
    masses: tl.tensor,  # (B, S): Σ exp(e_t) over a part of the steps
    totals: tl.tensor,  # (B, S, D): Σ exp(e_t) h_t
    T: int,
    F: tl.constexpr,
    D: tl.constexpr,
    LEAK: tl.constexpr,
    MEAN: tl.constexpr,
    INPUTS: tl.constexpr,
    UNITS: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    SPAN: tl.constexpr,
) -> None:
    """Program (b, s) sums over the steps s SPAN … (s + 1) SPAN - 1 of sequence b, ROWS of them at a time."""
    b, s = tl.program_id(0).to(tl.int64), tl.program_id(1)
    unit = tl.arange(0, UNITS)
    end = tl.minimum((s + 1) * SPAN, tl.load(lengths + b).to(tl.int32))
    layer = load_layer(w, F, D, INPUTS, UNITS)
    w_hc = tl.load(score + unit, mask=unit < D, other=0.0)
    mass, total = tl.zeros((ROWS,), tl.float32), tl.zeros((UNITS,), tl.float32)
    for start in range(s * SPAN, end, ROWS):
        t = start + tl.arange(0, ROWS)
        real = t < end
        v = load_steps(x + b * T * F, t, real, F, INPUTS)
        h = leaky(tl.dot(v, layer, input_precision=PRECISION), LEAK)  # h_t = LReLU(W_xh x_t + b_xh)
        p = real.to(tl.float32)
        if not MEAN:
            p *= tl.exp(tanh(tl.sum(h * w_hc[None, :], 1) + tl.load(shift)))  # exp(a(h_t))
        mass += p
        total += tl.sum(p[:, None] * h, 0)
    part = b * tl.num_programs(1) + s
    tl.store(masses + part, tl.sum(mass, 0))
    tl.store(totals + part * D + unit, total, mask=unit < D)


@triton.jit
def context_kernel(
    masses: tl.tensor,  # (B, S)
    totals: tl.tensor,  # (B, S, D)
    c: tl.tensor,  # (B, D)
    mass: tl.tensor,  # (B,)
    S: int,
    D: tl.constexpr,
    UNITS: tl.constexpr,
) -> None:
    """Program b adds up the parts of sequence b, from the first to the last: the same sum in every run."""
    b, unit = tl.program_id(0).to(tl.int64), tl.arange(0, UNITS)
    whole, total = 0.0, tl.zeros((UNITS,), tl.float32)
    for s in range(S):
        whole += tl.load(masses + b * S + s)
        total += tl.load(totals + (b * S + s) * D + unit, mask=unit < D, other=0.0)
    tl.store(mass + b, whole)
    # Eq. (1) or (2): c = Σ α_t h_t
    tl.store(c + b * D + unit, total / whole, mask=unit < D)
