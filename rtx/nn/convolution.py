"""Convolution over the past: each output sees its own position and earlier ones, some of them left out by dilation.

Bai, Kolter & Koltun (2018), §3.2-3.3; weight normalisation: Salimans & Kingma (2016).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_positive, check_sequence, check_step


class CausalConv(nn.Module):
    """One-dimensional convolution on (B, T, D) whose output t reads the inputs t, t - d, …, t - (k - 1) d.

    Inputs before the sequence are zero. Weights and bias start as torch's `Conv1d` does, uniform in ± 1/√fan-in,
    and a normalised weight's gain starts as the norm it has then.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        kernel: k, positions an output reads.
        dilation: d, distance between two of them.
        normalised: weight normalisation: of each output's weight, direction and norm are separate parameters.
        groups: the widths are cut into so many equal parts, and a part of the output reads the same part of the
            input; with as many as `inputs` each number has a filter of its own.

    Raises:
        ValueError: if a size is below 1, or `groups` does not divide a width.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, dilation: int = 1, normalised: bool = True, groups: int = 1
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = check_positive("inputs", inputs), check_positive("outputs", outputs)
        self.kernel, self.dilation = check_positive("kernel", kernel), check_positive("dilation", dilation)
        self.groups = check_positive("groups", groups)
        if inputs % groups or outputs % groups:
            raise ValueError(f"groups: expected a divisor of {inputs} and {outputs}, got {groups}")
        fan_in = kernel * inputs // groups
        self.direction = uniform_parameter(fan_in, outputs, inputs // groups, kernel)
        self.gain = nn.Parameter(_norms(self.direction.detach())) if normalised else None
        self.bias = uniform_parameter(fan_in, outputs)

    @property
    def past(self) -> int:
        """How far back an output reads: (k - 1) d."""
        return (self.kernel - 1) * self.dilation

    def weight(self) -> Float[Tensor, "outputs inputs kernel"]:
        """The filters, the oldest position first."""
        if self.gain is None:
            return self.direction
        # w = g v / ||v||, a norm per output
        return self.gain * self.direction / _norms(self.direction)

    def forward(self, x: Float[Tensor, "B T inputs"]) -> Float[Tensor, "B T outputs"]:
        """Convolve a sequence that begins here.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.inputs, like=self.bias)
        return self._convolve(F.pad(x, (0, 0, self.past, 0)))

    def step(
        self, x: Float[Tensor, "B inputs"], state: State | None = None
    ) -> tuple[Float[Tensor, "B outputs"], tuple[Float[Tensor, "B past inputs"]]]:
        """One position of a stream; the state holds the last (k - 1) d inputs, the oldest first.

        Raises:
            ValueError: if `x` is not (B, inputs), or `state` is another model's or batch's.
        """
        check_step("x", x, self.inputs, like=self.bias)
        if state is None:
            state = (x.new_zeros(len(x), self.past, self.inputs),)
        check_state(state, (len(x), self.past, self.inputs))
        window = torch.cat([state[0], x[:, None]], 1)  # (B, past + 1, inputs)
        return self._convolve(window).squeeze(1), (window[:, 1:],)

    def _convolve(self, x: Tensor) -> Tensor:
        """(B, past + T, inputs) → (B, T, outputs)."""
        # (Bai et al., §3.3, Eq. 2) F(t) = Σ_i f(i) x_{t - d i}
        y = F.conv1d(x.transpose(1, 2), self.weight(), self.bias, dilation=self.dilation, groups=self.groups)
        return y.transpose(1, 2)

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.inputs}, {self.outputs}, kernel={self.kernel}, dilation={self.dilation}, groups={self.groups}"


def _norms(filters: Float[Tensor, "outputs inputs kernel"]) -> Float[Tensor, "outputs 1 1"]:
    return torch.linalg.vector_norm(filters, dim=(1, 2), keepdim=True)
