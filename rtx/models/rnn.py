"""The recurrent baselines of Wang et al. (2019), Tables 1-4: RNN, GRU and LSTM over the whole sequence."""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn.recurrent import read_network
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_sequence, check_step

TORCH = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class RNN(nn.Module):
    """torch's own recurrent network as a backbone.

    Args:
        d_model: D, width of the input and of the hidden state.
        layers: L, stacked networks.
        cell: "rnn", "gru" or "lstm".
        dropout: on each layer's output.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(self, d_model: int, layers: int = 1, cell: str = "gru", dropout: float = 0.0) -> None:
        super().__init__()
        layers, D = check_positive("layers", layers), check_positive("d_model", d_model)  # torch takes no other kinds
        check_fraction("dropout", dropout)
        network = TORCH[check_choice("cell", cell, TORCH)]
        self.d_model = D
        # torch's own dropout leaves the last layer out, and warns where that is the only one
        between = dropout if layers > 1 else 0.0
        self.network = network(D, D, layers, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """A piece of a stream, and the state behind it: h, and an LSTM's c, each (B, L, D).

        Raises:
            ValueError: as `forward`, or if `state` is another model's or batch's.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters(), None))
        hidden, after = read_network(self.network, x, self._to_torch(state, x.shape[0]))
        after = after if isinstance(after, tuple) else (after,)
        return self.dropout(hidden), tuple(part.transpose(0, 1) for part in after)

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters(), None))
        y, state = self.read(x[:, None], state)
        return y.squeeze(1), state

    def _to_torch(self, state: State | None, batch: int) -> Tensor | tuple[Tensor, ...] | None:
        """torch puts the layers before the batch, and an LSTM's two parts into a tuple."""
        if state is None:
            return None
        two = self.network.mode == "LSTM"  # one that torch has quantised is no nn.LSTM
        check_state(state, *[(batch, self.network.num_layers, self.d_model)] * (1 + two))
        parts = tuple(part.transpose(0, 1).contiguous() for part in state)
        return parts if two else parts[0]
