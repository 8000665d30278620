"""LocalRNN: one small recurrent network, run over the window that ends at each position.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2-3.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.ops.local_rnn import local_rnn
from rtx.nn.ops.local_rnn.torch import window_states
from rtx.nn.recurrent import CELLS
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_choice, check_positive, check_sequence


class LocalRNN(nn.Module):
    """For every position t, run a recurrent network over x_{t-M+1} … x_t. Output t is its hidden state after x_t.

    M - 1 zero vectors are put before the sequence. The network reads them like any input, so its biases act on them,
    as in the authors' code. The parameters have the names, shapes and initialisation of a one-layer `torch.nn.RNN`,
    `GRU` or `LSTM`, so you can copy weights with `load_state_dict`.

    Args:
        d_model: D, width of the input and of the hidden state.
        window: M, number of positions in a window, the current one included.
        cell: "rnn", "gru" or "lstm".
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
        """Return the last hidden state of each position's window.

        `rtx.nn.ops.local_rnn.torch` shows how all windows are computed together.
        """
        check_sequence("x", x, self.d_model)
        y: Tensor = local_rnn(x, *self._weights(), self.window, self.cell)
        return y

    def introspect(self, x: Float[Tensor, "B T D"]) -> dict[str, Float[Tensor, "B T M D"]]:
        """Return "states", the hidden state after each of a window's M positions, the oldest position first.

        An LSTM also has "memories". The last of the M states is the output of `forward`.
        """
        parts = zip(*window_states(x, *self._weights(), self.window, self.cell), strict=True)
        names = ("states", "memories")[: CELLS[self.cell].parts]
        return {name: torch.stack(part, 2) for name, part in zip(names, parts, strict=True)}

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream.

        Each position belongs to M windows. One window ends there, and M - 1 windows continue. The state is a tuple
        with one tensor (B, M-1, D): the hidden states of the windows that continue. The newest window, which has read
        one position, is first. An LSTM has a second tensor of this shape, with the memories c.
        """
        check_sequence("x", x, self.d_model)
        if state is None:
            state = self._after_zeros(x.shape[0])
        else:
            check_state(state, *[(x.shape[0], self.window - 1, self.d_model)] * CELLS[self.cell].parts)
        state = tuple(part.to(self.weight_hh_l0) for part in state)  # it may come from autocast
        first, state = self._steps(x[:, : self.window], state)
        if x.shape[1] <= self.window:
            return first, state
        # The other windows lie in the piece. Those that continue at its end began in its last M - 1 positions.
        y = local_rnn(x, *self._weights(), self.window, self.cell)
        if self.window > 1:
            _, state = self._steps(x[:, x.shape[1] - self.window + 1 :], state)
        return torch.cat([first, y[:, self.window :]], 1), state

    def _steps(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one position after the other, all M windows of a position together."""
        outputs = []
        for from_input in F.linear(x, self.weight_ih_l0, self.bias_ih_l0).unbind(1):
            before = tuple(F.pad(part, (0, 0, 1, 0)) for part in state)  # a new window begins here with a zero state
            from_state = F.linear(before[0], self.weight_hh_l0, self.bias_hh_l0)  # (B, M, gates · D)
            # Eq. (2)-(3), one step of all M windows; the oldest ends
            after = CELLS[self.cell].step(from_input[:, None], from_state, before)
            outputs.append(after[0][:, -1])
            state = tuple(part[:, :-1] for part in after)
        return torch.stack(outputs, 1), state

    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0

    def _after_zeros(self, batch: int) -> State:
        """Return the states of M - 1 windows that have read 1, 2, … M - 1 zero vectors."""
        if self.window == 1:  # no window continues
            empty = self.bias_ih_l0.new_empty(batch, 0, self.d_model)
            return (empty,) * CELLS[self.cell].parts
        states, state = list[State](), None
        for _ in range(self.window - 1):
            from_state = self.bias_hh_l0 if state is None else F.linear(state[0], self.weight_hh_l0, self.bias_hh_l0)
            state = CELLS[self.cell].step(self.bias_ih_l0, from_state, state)  # each part (D,)
            states.append(state)
        return tuple(torch.stack(part).expand(batch, -1, -1) for part in zip(*states, strict=True))

    def extra_repr(self) -> str:
        """Return what `print(model)` shows."""
        return f"d_model={self.d_model}, window={self.window}, cell={self.cell!r}"
