"""RG-LRU: a recurrence that is linear in its state, so that all its steps can be computed at once.

De et al. (2024), Griffin, §2.4, Eq. 1-4. `rtx.nn.naive_scan` holds the same functions as plain loops.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.state import State, check_state
from rtx.nn.validate import check_positive, check_sequence, check_step

C = 8  # the paper's c
SLOWEST, FASTEST = 0.999, 0.9


def linear_scan(
    a: Float[Tensor, "B T D"], b: Float[Tensor, "B T D"], start: Float[Tensor, "B D"] | None = None
) -> Float[Tensor, "B T D"]:
    """h_t = a_t h_{t-1} + b_t for every t, in ⌈log₂ T⌉ passes over the sequence.

    A run of steps is again such a step: a' (a h + b) + b' = (a' a) h + (a' b + b'). After a pass with shift s, the
    pair (a, b) at t stands for the last 2 s steps up to t, and after the last pass for all of them. Nothing is
    divided and no logarithm taken, so decays of any size are safe.

    Args:
        a: what each step keeps of the state, number by number.
        b: what it adds.
        start: h_0, the state before the first step; zero if not given.
    """
    shift = 1
    while shift < a.shape[1]:
        late = a[:, shift:]
        b = torch.cat([b[:, :shift], late * b[:, :-shift] + b[:, shift:]], 1)
        a = torch.cat([a[:, :shift], late * a[:, :-shift]], 1)
        shift *= 2
    return b if start is None else b + a * start[:, None]


class BlockDiagonal(nn.Module):
    """A linear layer in which each of H equal parts of the input feeds the same part of the output alone.

    Weights start as N(0, 1/fan-in), biases as zero.

    Args:
        d_model: D, width of the input and of the output.
        heads: H, must divide D.

    Raises:
        ValueError: if a size is below 1 or the heads do not divide the width.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if check_positive("d_model", d_model) % check_positive("heads", heads):
            raise ValueError(f"heads: expected a divisor of d_model = {d_model}, got {heads}")
        width = d_model // heads
        self.weight = nn.Parameter(torch.randn(heads, width, width) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """W x + b, W being (H, out, in)."""
        parts = x.unflatten(-1, (len(self.weight), -1))  # (…, H, K)
        return torch.einsum("...hi,hoi->...ho", parts, self.weight).flatten(-2) + self.bias


class RGLRU(nn.Module):
    """Real-gated linear recurrent unit: each number decays at its own rate, which a gate can stop.

    The gates are block-diagonal, as in the paper. The recurrence is computed in float32 at least: in bfloat16 a decay
    of .999 would be 1. At the start a^c is uniform in [.9, .999], as the paper says; the authors' RecurrentGemma
    draws a itself, without c, from there, uniform in a².

    Args:
        d_model: D, width of the input and of the state.
        heads: H, blocks of the gates; must divide D.

    Raises:
        ValueError: if a size is below 1 or the heads do not divide the width.
    """

    def __init__(self, d_model: int, heads: int = 1) -> None:
        super().__init__()
        self.d_model = d_model
        self.recurrence_gate, self.input_gate = BlockDiagonal(d_model, heads), BlockDiagonal(d_model, heads)
        log_a = torch.empty(d_model).uniform_(FASTEST, SLOWEST).log() / C
        self.decay = nn.Parameter(log_a - (-torch.expm1(log_a)).log())  # Λ with σ(Λ) = a

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The states h_1 … h_T of a sequence that begins here.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=self.decay)
        return linear_scan(*self._terms(x)).to(x.dtype)

    def step(
        self, x: Float[Tensor, "B D"], state: State | None = None
    ) -> tuple[Float[Tensor, "B D"], tuple[Float[Tensor, "B D"]]]:
        """One position of a stream; the state is h_{t-1}, in float32 at least.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=self.decay)
        a, b = self._terms(x)
        if state is not None:
            check_state(state, (len(x), self.d_model))
            b = a * state[0] + b
        return b.to(x.dtype), (b,)

    def inside(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """By name, each (B, T, D): what a step keeps, a_t, what it adds, and the states h_t.

        Raises:
            ValueError: as `forward`.
        """
        check_sequence("x", x, self.d_model, like=self.decay)
        a, b = self._terms(x)
        return {"kept": a, "added": b, "states": linear_scan(a, b)}

    def _terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What each step keeps, a_t, and what it adds."""
        wide = torch.promote_types(x.dtype, torch.float32)
        # Eq. (1)-(2): r_t = σ(W_a x_t + b_a), i_t = σ(W_x x_t + b_x)
        r, i = (torch.sigmoid(gate(x).to(wide)) for gate in (self.recurrence_gate, self.input_gate))
        # Eq. (3): a_t = a^(c r_t), a = σ(Λ)
        log_a = C * r * F.logsigmoid(self.decay.to(wide))
        # Eq. (4): h_t = a_t h_{t-1} + sqrt(1 - a_t²) (i_t x_t); the floor keeps the root's gradient finite at a_t = 1
        left = (-torch.expm1(2 * log_a)).clamp(min=torch.finfo(wide).tiny)
        return log_a.exp(), left.sqrt() * i * x.to(wide)
