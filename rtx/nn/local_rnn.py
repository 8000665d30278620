"""LocalRNN: one small recurrent network, run over the window that ends at each position.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2-3.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.recurrent import CELLS
from rtx.nn.validate import check_choice, check_positive, check_sequence


class LocalRNN(nn.Module):
    """The last hidden state of an RNN run over x_{t-M+1} … x_t, for every t at once.

    Before the sequence stand M - 1 zero vectors. They pass through the cell like any input, so its biases act on
    them, as in the authors' code. Parameters are named, shaped and initialised as `torch.nn.RNN`, `GRU` and `LSTM`
    do for one layer: a state dict moves between them.

    Args:
        d_model: D, width of the input and of the hidden state.
        window: M, positions in a window, the present one included.
        cell: "rnn", "gru" or "lstm".

    Raises:
        ValueError: if a size is below 1 or the cell is unknown.
    """

    def __init__(self, d_model: int, window: int, cell: str = "gru") -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        self.window = check_positive("window", window)
        self.cell = check_choice("cell", cell, CELLS)
        gates, bound = CELLS[cell].gates, 1 / math.sqrt(d_model)

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

        self.weight_ih_l0 = parameter(gates * d_model, d_model)
        self.weight_hh_l0 = parameter(gates * d_model, d_model)
        self.bias_ih_l0 = parameter(gates * d_model)
        self.bias_hh_l0 = parameter(gates * d_model)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map each position to its window's last hidden state.

        A position is in M windows, but its projection is the same in all of them: it is computed once, and step i
        of all windows reads a slice shifted by i. So there is no copy of the windows, and at the first step, where
        the state is zero, no recurrent product either.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=self.weight_ih_l0)
        B, T, _ = x.shape
        step = CELLS[self.cell].step
        pads = self.bias_ih_l0.expand(B, self.window - 1, -1)  # the projection of a zero vector
        projected = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)
        projected = torch.cat([pads.to(projected.dtype), projected], 1)  # (B, M-1+T, gates · D)
        # Eq. (2)-(3): windows advance together, state is (B, T, D)
        state = step(projected[:, :T], self.bias_hh_l0, None)
        for i in range(1, self.window):
            recurrent = F.linear(state[0], self.weight_hh_l0, self.bias_hh_l0)
            state = step(projected[:, i : i + T], recurrent, state)
        return state[0]

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"d_model={self.d_model}, window={self.window}, cell={self.cell!r}"
