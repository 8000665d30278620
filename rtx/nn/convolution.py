"""Causal convolution: each output reads its own position and earlier ones, with gaps if it is dilated.

Bai, Kolter & Koltun (2018), §3.2-3.3; weight normalisation: Salimans & Kingma (2016).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_divides, check_positive


class CausalConv(nn.Module):
    """A one-dimensional convolution on (B, T, D). Output t reads the inputs t, t - d, …, t - (k - 1) d.

    Inputs before the sequence are zero. Weights and bias start as in torch's `Conv1d`, uniform in ± 1/√fan_in. The
    gain of a normalised weight starts as the weight's norm.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        kernel: k, number of positions that an output reads.
        dilation: d, distance between two of these positions.
        normalised: use weight normalisation: the direction and the norm of each output's weight are separate
            parameters.
        groups: number of equal parts of the widths. A part of the output reads the same part of the input.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, dilation: int = 1, normalised: bool = True, groups: int = 1
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = check_positive("inputs", inputs), check_positive("outputs", outputs)
        self.kernel, self.dilation = check_positive("kernel", kernel), check_positive("dilation", dilation)
        check_divides("groups", groups, inputs), check_divides("groups", groups, outputs)
        self.groups, fan_in = groups, kernel * inputs // groups
        self.direction = uniform_parameter(fan_in, outputs, inputs // groups, kernel)
        self.gain = nn.Parameter(_norms(self.direction.detach())) if normalised else None
        self.bias = uniform_parameter(fan_in, outputs)

    @property
    def past(self) -> int:
        """How many positions back an output reads: (k - 1) d."""
        return (self.kernel - 1) * self.dilation

    def filters(self) -> Float[Tensor, "outputs {self.inputs//self.groups} kernel"]:
        """Return the filters, the oldest position first."""
        if self.gain is None:
            return self.direction
        # w = g v / ||v||, with one norm for each output
        return self.gain * self.direction / _norms(self.direction)

    def forward(self, x: Float[Tensor, "B T inputs"]) -> Float[Tensor, "B T outputs"]:
        """Convolve a sequence."""
        return self._convolve(F.pad(x, (0, 0, self.past, 0)))

    def read(
        self, x: Float[Tensor, "B T inputs"], state: State | None = None
    ) -> tuple[Float[Tensor, "B T outputs"], State]:
        """Read a piece of a stream. The state has the last (k - 1) d inputs, the oldest first."""
        if state is None:
            state = (x.new_zeros(x.shape[0], self.past, self.inputs),)
        check_state(state, (x.shape[0], self.past, self.inputs))
        both = torch.cat([state[0], x], 1)  # (B, past + T, inputs)
        return self._convolve(both), (both[:, x.shape[1] :].clone(),)  # a view would keep the whole piece

    def _convolve(self, x: Tensor) -> Tensor:
        """(B, past + T, inputs) → (B, T, outputs)."""
        # Bai et al., §3.3, Eq. (2): F(t) = Σ_i f(i) x_{t - d i}
        y = F.conv1d(x.transpose(1, 2), self.filters(), self.bias, dilation=self.dilation, groups=self.groups)
        return y.transpose(1, 2)

    def extra_repr(self) -> str:
        """Return what `print(model)` shows."""
        return f"{self.inputs}, {self.outputs}, kernel={self.kernel}, dilation={self.dilation}, groups={self.groups}"


class LocalConv(CausalConv):
    """tanh of a causal convolution, (B, T, D) → (B, T, D). It reads what a `LocalRNN` of the same window reads."""

    def __init__(self, d_model: int, window: int) -> None:
        super().__init__(d_model, d_model, window, normalised=False)

    def _convolve(self, x: Tensor) -> Tensor:
        return super()._convolve(x).tanh()


def _norms(filters: Float[Tensor, "outputs group kernel"]) -> Float[Tensor, "outputs 1 1"]:
    return torch.linalg.vector_norm(filters, dim=(1, 2), keepdim=True)
