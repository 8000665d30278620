"""The recurrent cells on tiles, forward and backward: `rtx.nn.recurrent` and `rtx.nn.kernels.cells` in Triton.

`x` and `a` are what input and state contribute to each gate, with their biases; gates stand in torch's order. What a
step keeps for the way back is as many tiles as the gradients that are put in their place: first those of each a, then
a GRU's own, that of x at its last gate. At all other gates x and a are only added, and have the same gradient.
"""

import triton
import triton.language as tl


@triton.jit
def sigmoid(v: tl.tensor) -> tl.tensor:
    """1 / (1 + e^-v)."""
    return 1.0 / (1.0 + tl.exp(-v))


@triton.jit
def tanh(v: tl.tensor) -> tl.tensor:
    """By the sigmoid, as Triton's own language has no tanh; its error is 1e-7, about float32's last digit of 1."""
    return 2.0 * sigmoid(2.0 * v) - 1.0


@triton.jit
def forward(x: tl.tuple, a: tl.tuple, h: tl.tensor, c: tl.tensor, CELL: tl.constexpr) -> tl.tuple:
    """h', c', and what is kept. Only an LSTM has a memory c; the others hand it on."""
    if CELL == "rnn":
        y = tanh(x[0] + a[0])
        return y, c, (y,)  # h' = tanh(x + a)
    elif CELL == "gru":
        r, z = sigmoid(x[0] + a[0]), sigmoid(x[1] + a[1])
        n = tanh(x[2] + r * a[2])
        return n + z * (h - n), c, (r, z, a[2], n)  # h' = (1 - z) n + z h
    else:
        i, f = sigmoid(x[0] + a[0]), sigmoid(x[1] + a[1])
        g, o = tanh(x[2] + a[2]), sigmoid(x[3] + a[3])
        c = f * c + i * g  # c' = f c + i g
        return o * tanh(c), c, (i, f, g, o)  # h' = o tanh(c')


@triton.jit
def backward(
    d_h: tl.tensor, d_c: tl.tensor, kept: tl.tuple, h: tl.tensor, c: tl.tensor, CELL: tl.constexpr
) -> tl.tuple:
    """From the gradients of h' and c': what takes the place of what was kept; those of h, W's share apart, and of c."""
    if CELL == "rnn":
        y = kept[0]
        return (d_h * (1 - y * y),), tl.zeros_like(d_h), d_c
    elif CELL == "gru":
        r, z, a_n, n = kept[0], kept[1], kept[2], kept[3]
        d_n = d_h * (1 - z) * (1 - n * n)
        d_r, d_z = d_n * a_n * r * (1 - r), d_h * (h - n) * z * (1 - z)
        return (d_r, d_z, d_n * r, d_n), d_h * z, d_c
    else:
        i, f, g, o = kept[0], kept[1], kept[2], kept[3]
        s = tanh(f * c + i * g)
        d_c += d_h * o * (1 - s * s)
        d_i, d_f, d_g, d_o = d_c * g * i * (1 - i), d_c * c * f * (1 - f), d_c * i * (1 - g * g), d_h * s * o * (1 - o)
        return (d_i, d_f, d_g, d_o), tl.zeros_like(d_h), d_c * f
