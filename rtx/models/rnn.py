"""The recurrent baselines of Wang et al. (2019), Tables 1-4: RNN, GRU and LSTM over the whole sequence."""

from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from rtx.models.backbone import Card, CausalModel
from rtx.nn.recurrent import run_network
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_choice, check_fraction, check_positive

TORCH = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class RNN(CausalModel):
    """torch's own recurrent network as a backbone.

    Args:
        d_model: D, width of the input and of the hidden state.
        layers: L, number of stacked networks.
        cell: "rnn", "gru" or "lstm".
        dropout: on the output of each layer.
    """

    stateful = True

    def __init__(self, d_model: int, layers: int = 1, cell: str = "gru", dropout: float = 0.0) -> None:
        super().__init__()
        self.layers, self.d_model = check_positive("layers", layers), check_positive("d_model", d_model)
        network = TORCH[check_choice("cell", cell, TORCH)]
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        # torch's own dropout leaves the last layer out, and warns if that is the only one
        between = dropout if layers > 1 else 0.0
        self.network = network(self.d_model, self.d_model, self.layers, batch_first=True, dropout=between)
        self.lstm = cell == "lstm"

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has h, and for an LSTM c, (B, L, D) each."""
        self.check_input(x)
        # torch puts the layers before the batch, and a lone h is not in a tuple
        given: Tensor | tuple[Tensor, ...] | None = None
        if state is not None:
            check_state(state, *[(x.shape[0], self.layers, self.d_model)] * (1 + self.lstm))
            swapped = tuple(part.transpose(0, 1).contiguous() for part in state)
            given = swapped if self.lstm else swapped[0]
        hidden, after = run_network(self.network, self.network, x, given)
        return self.dropout(hidden), tuple(part.transpose(0, 1) for part in (after if self.lstm else (after,)))


OURS = "none printed; ours for Nottingham"
RNN_CARD = Card("rnn", partial(RNN, cell="rnn"), "Elman (1990)", OURS, {"d_model": 256, "layers": 1})
GRU_CARD = Card("gru", partial(RNN, cell="gru"), "Cho et al. (2014)", OURS, {"d_model": 256, "layers": 1})
LSTM_CARD = Card(
    "lstm",
    partial(RNN, cell="lstm"),
    "Hochreiter & Schmidhuber (1997)",
    "Wang et al., Table 4, words",
    {"d_model": 700, "layers": 3},
)
