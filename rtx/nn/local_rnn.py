"""LocalRNN: one small recurrent network, run over the window that ends at each position.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2-3.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.kernels.local_rnn import local_rnn, window_states
from rtx.nn.recurrent import CELLS
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_choice, check_positive, check_sequence, check_step


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
        gates, parameter = CELLS[cell].gates, partial(uniform_parameter, d_model)
        self.weight_ih_l0 = parameter(gates * d_model, d_model)
        self.weight_hh_l0 = parameter(gates * d_model, d_model)
        self.bias_ih_l0 = parameter(gates * d_model)
        self.bias_hh_l0 = parameter(gates * d_model)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map each position to its window's last hidden state.

        How, `rtx.nn.kernels.local_rnn` shows: there is no copy of the windows.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=self.weight_ih_l0)
        y: Tensor = local_rnn(x, *self._weights(), self.window, self.cell)
        return y

    def inside(self, x: Float[Tensor, "B T D"]) -> dict[str, Float[Tensor, "B T M D"]]:
        """What `forward` goes through: "states", the hidden state after each of a window's M positions, oldest first.

        An LSTM has "memories", too. The last of the M is what `forward` returns.
        """
        check_sequence("x", x, self.d_model, like=self.weight_ih_l0)
        parts = zip(*window_states(x, *self._weights(), self.window, self.cell), strict=True)
        return {name: torch.stack(part, 2) for name, part in zip(("states", "memories"), parts, strict=False)}

    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream, at the cost of one step of the cell over a batch of M windows.

        Position t is in M windows, of which the oldest ends with it and M - 1 go on. The state holds what those
        have read so far: (B, M-1, D), the youngest first; an LSTM's memories second.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=self.weight_ih_l0)
        if state is None:
            state = self._pads(len(x))
        else:
            check_state(state, *[(len(x), self.window - 1, self.d_model)] * CELLS[self.cell].parts)
        fresh = [F.pad(part, (0, 0, 1, 0)) for part in state]  # a window that begins here: zero state, (B, M, D)
        projected = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)[:, None]
        recurrent = F.linear(fresh[0], self.weight_hh_l0, self.bias_hh_l0)
        after = CELLS[self.cell].step(projected, recurrent, tuple(fresh))
        return after[0][:, -1], tuple(part[:, :-1] for part in after)

    def _pads(self, batch: int) -> State:
        """What M - 1 windows have read before the sequence: 1, 2, … M - 1 zero vectors."""
        step, D = CELLS[self.cell].step, self.d_model
        read: list[State] = []
        for _ in range(self.window - 1):
            recurrent = F.linear(read[-1][0], self.weight_hh_l0, self.bias_hh_l0) if read else self.bias_hh_l0
            read.append(step(self.bias_ih_l0, recurrent, read[-1] if read else None))
        empty = self.bias_ih_l0.new_empty(0, D)
        parts = zip(*read, strict=True) if read else [()] * CELLS[self.cell].parts
        return tuple((torch.stack(p) if p else empty).expand(batch, -1, -1) for p in parts)

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"d_model={self.d_model}, window={self.window}, cell={self.cell!r}"
