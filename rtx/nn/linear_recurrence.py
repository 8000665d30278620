"""RG-LRU: a recurrence that is linear in its state, so that all its steps can be computed at once.

De et al. (2024), Griffin, §2.4, Eq. 1-4.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_divides, check_positive

C = 8  # the paper's c
SLOWEST, FASTEST = 0.999, 0.9  # range of a^c at the start


def linear_scan(a: Float[Tensor, "B T D"], b: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
    """Return h_t = a_t h_{t-1} + b_t for every t, with h_0 = 0, in ⌈log₂ T⌉ passes over the sequence.

    Two steps in a row are again such a step: a' (a h + b) + b' = (a' a) h + (a' b + b'). After a pass with shift s,
    the pair (a, b) at t stands for the last 2 s steps up to t, and after the last pass for all of them. There is no
    division and no logarithm, so any decay is safe.

    Args:
        a: the factor of the state, for each number.
        b: the term that is added.
    """
    if b.ndim != 3:
        raise ValueError(f"a and b: expected the shape (batch, time, width), got {tuple(b.shape)}")
    shift = 1
    while shift < a.shape[1]:
        late = a[:, shift:]
        b = torch.cat([b[:, :shift], late * b[:, :-shift] + b[:, shift:]], 1)
        a = torch.cat([a[:, :shift], late * a[:, :-shift]], 1)
        shift *= 2
    return b


class BlockDiagonal(nn.Module):
    """A linear layer of H blocks: each of H equal parts of the input feeds the same part of the output.

    Weights start as N(0, 1/fan_in), biases as zero.

    Args:
        d_model: D, width of the input and of the output.
        heads: H; must divide D.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        width = check_positive("d_model", d_model) // check_divides("heads", heads, d_model)
        self.weight = nn.Parameter(torch.randn(heads, width, width) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """Return W x + b, with W as (H, out, in)."""
        blocks = x.unflatten(-1, (len(self.weight), -1))  # (…, H, K)
        return torch.einsum("...hi,hoi->...ho", blocks, self.weight).flatten(-2) + self.bias


class RGLRU(nn.Module):
    """The real-gated linear recurrent unit: each number decays at its own rate, and a gate can stop the decay.

    The gates are block-diagonal, as in the paper. The recurrence is computed in float32 at least, because in bfloat16 a
    decay of .999 would be 1. At the start a^c is uniform in [.9, .999], as the paper says. The authors' code,
    RecurrentGemma, draws a itself from that range, uniform in a². It also does not scale the first input of a sequence
    by sqrt(1 - a_t²), as Eq. 4 does.

    Args:
        d_model: D, width of the input and of the state.
        heads: H, number of blocks of the gates; must divide D.
    """

    def __init__(self, d_model: int, heads: int = 1) -> None:
        super().__init__()
        self.d_model = d_model
        self.recurrence_gate, self.input_gate = BlockDiagonal(d_model, heads), BlockDiagonal(d_model, heads)
        log_a = torch.empty(d_model).uniform_(FASTEST, SLOWEST).log() / C
        self.decay = nn.Parameter(log_a - (-torch.expm1(log_a)).log())  # Λ with σ(Λ) = a

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return the states h_1 … h_T of a sequence."""
        return linear_scan(*self._terms(x)).to(x.dtype)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state is the last h, (B, D), in float32 at least."""
        a, b = self._terms(x)
        if state is not None:
            check_state(state, (x.shape[0], self.d_model))
            # Eq. (4): h_t = a_t h_{t-1} + b_t; before the first step h is zero
            b = torch.cat([a[:, :1] * state[0][:, None] + b[:, :1], b[:, 1:]], 1)
        h = linear_scan(a, b)
        return h.to(x.dtype), (h[:, -1].clone(),)  # a view would keep the whole piece

    def introspect(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """Return, each (B, T, D): "kept", the factor a_t, "added", the term that is added, and "states", h_t."""
        a, b = self._terms(x)
        return {"kept": a, "added": b, "states": linear_scan(a, b)}

    def _terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factor a_t of the state, and the term that is added to it."""
        wide = torch.promote_types(x.dtype, torch.float32)
        # Eq. (1)-(2): r_t = σ(W_a x_t + b_a), i_t = σ(W_x x_t + b_x)
        r, i = (torch.sigmoid(gate(x).to(wide)) for gate in (self.recurrence_gate, self.input_gate))
        # Eq. (3): a_t = a^(c r_t), a = σ(Λ). The logarithm as softplus keeps its digits in ONNX; logsigmoid does not.
        log_a = C * r * -F.softplus(-self.decay.to(wide))
        # Eq. (4): h_t = a_t h_{t-1} + sqrt(1 - a_t²) (i_t x_t). The floor keeps the root's gradient finite at a_t = 1.
        left = (-torch.expm1(2 * log_a)).clamp(min=torch.finfo(wide).tiny)
        return log_a.exp(), left.sqrt() * i * x.to(wide)
