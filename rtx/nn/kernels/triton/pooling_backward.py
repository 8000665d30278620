"""The gradients of feed-forward attention's context: every state once more, a tile at a time, and none of them kept.

With p_t = exp(e_t) and c = Σ p_t h_t / Σ p_t, let `pull` be the gradient of c over Σ p_t, and `level` <pull, c>. Then
h_t has the gradient p_t pull + s_t w_hc, where s_t = p_t (<pull, h_t> - level) (1 - e_t²) is that of w_hc h_t + b_hc.
"""

import triton
import triton.language as tl

from rtx.nn.kernels.triton.cells import tanh
from rtx.nn.kernels.triton.pooling_forward import leaky, load_layer, load_steps


@triton.jit
def slope(before: tl.tensor, LEAK: tl.constexpr) -> tl.tensor:
    """Of the leak; at its corner, as torch has it."""
    if LEAK == "printed":
        return tl.where(before >= 0.01, 1.0, 0.0)
    else:
        return tl.where(before > 0, 1.0, 0.01)


@triton.jit
def gradients_kernel(
    x: tl.tensor,  # (B, T, F)
    lengths: tl.tensor,  # (B,)
    w: tl.tensor,  # (F+1, D)
    score: tl.tensor,  # (D,)
    shift: tl.tensor,  # (1,)
    pull: tl.tensor,  # (B, D)
    level: tl.tensor,  # (B,)
    d_w: tl.tensor,  # (B, S, F+1, D), of a part of the steps; likewise the next two
    d_score: tl.tensor,  # (B, S, D)
    d_shift: tl.tensor,  # (B, S)
    d_x: tl.tensor,  # (B, T, F)
    T: int,
    F: tl.constexpr,
    D: tl.constexpr,
    LEAK: tl.constexpr,
    MEAN: tl.constexpr,
    WANTS_X: tl.constexpr,
    INPUTS: tl.constexpr,
    UNITS: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    SPAN: tl.constexpr,
) -> None:
    """Program (b, s) works on the steps that it summed over forward."""
    b, s = tl.program_id(0).to(tl.int64), tl.program_id(1)
    unit, f = tl.arange(0, UNITS), tl.arange(0, INPUTS)
    end = tl.minimum((s + 1) * SPAN, tl.load(lengths + b).to(tl.int32))
    layer = load_layer(w, F, D, INPUTS, UNITS)
    w_hc = tl.load(score + unit, mask=unit < D, other=0.0)
    pulled = tl.load(pull + b * D + unit, mask=unit < D, other=0.0)
    by_w, by_score = tl.zeros((INPUTS, UNITS), tl.float32), tl.zeros((UNITS,), tl.float32)
    by_shift = tl.zeros((ROWS,), tl.float32)
    for start in range(s * SPAN, end, ROWS):
        t = start + tl.arange(0, ROWS)
        real = t < end
        v = load_steps(x + b * T * F, t, real, F, INPUTS)
        before = tl.dot(v, layer, input_precision=PRECISION)
        p = real.to(tl.float32)
        d_h = p[:, None] * pulled[None, :]
        if not MEAN:
            h = leaky(before, LEAK)
            e = tanh(tl.sum(h * w_hc[None, :], 1) + tl.load(shift))
            p *= tl.exp(e)
            by_e = p * (tl.sum(h * pulled[None, :], 1) - tl.load(level + b)) * (1 - e * e)
            d_h = p[:, None] * pulled[None, :] + by_e[:, None] * w_hc[None, :]
            by_score += tl.sum(by_e[:, None] * h, 0)
            by_shift += by_e
        d_before = d_h * slope(before, LEAK)
        by_w = tl.dot(v.trans(), d_before, by_w, input_precision=PRECISION)
        if WANTS_X:
            for i in range(F):  # a column at a time: F is small
                d_v = tl.sum(d_before * tl.load(w + i * D + unit, mask=unit < D, other=0.0)[None, :], 1)
                tl.store(d_x + (b * T + t) * F + i, d_v.to(d_x.dtype.element_ty), mask=real)
    part = b * tl.num_programs(1) + s
    place = d_w + part * ((F + 1) * D) + f[:, None] * D + unit[None, :]
    tl.store(place, by_w, mask=(f <= F)[:, None] & (unit < D)[None, :])
    if not MEAN:
        tl.store(d_score + part * D + unit, by_score, mask=unit < D)
        tl.store(d_shift + part, tl.sum(by_shift, 0))
