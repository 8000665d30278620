"""The recurrent baselines of Wang et al. (2019), Tables 1-4: RNN, GRU and LSTM over the whole sequence."""

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn.validate import check_choice, check_fraction, check_positive, check_sequence

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
        check_positive("layers", layers), check_fraction("dropout", dropout)
        network = TORCH[check_choice("cell", cell, TORCH)]
        self.d_model = check_positive("d_model", d_model)
        # torch's own dropout leaves the last layer out, and warns where that is the only one
        between = dropout if layers > 1 else 0.0
        self.network = network(d_model, d_model, layers, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        check_sequence("x", x, self.d_model, like=self.network.weight_ih_l0)
        hidden, _ = self.network(x)
        return self.dropout(hidden)
