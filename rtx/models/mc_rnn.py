"""MC-RNN: recurrent channels that cut the text into different blocks, joined at every step by attention.

Xu et al. (2019), Modeling Local Dependence in Natural Language with Multi-Channel Recurrent Neural Networks.
"""

from itertools import chain, pairwise, repeat

from jaxtyping import Float
from torch import Tensor, nn

from rtx.models.backbone import Card, CausalModel
from rtx.nn.dropout import LockedDropout
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.streaming import State, read_through
from rtx.nn.validate import check_fraction, check_positive


class MCRNN(CausalModel):
    """A stack of multi-channel layers. Only the attention's mean of a layer's channels reaches the next layer.

    At width 256, block 4 and LSTM, the two encoder and two decoder layers of Table 2 have 1.3 M parameters more than
    plain LSTM layers (4 · (3 · 256² + 2 · 256² + 256) = 1,311,744). The table says 4 M. With one W_j for each gate it
    would be 3.7 M (4 · (12 · 256² + 2 · 256² + 256) = 3,671,040), which is nearer. The paper does not say whether the
    encoder has two directions. With two, as in `Seq2Seq` here, there are six layers, and the numbers are 2.0 M and
    5.5 M.

    Args:
        d_model: D, width of the input and of the last layer.
        layers: L.
        block: n, number of nodes in a block; a layer has n - 1 channels. The paper's MC-RNN-3 is n = 4.
        cell: "rnn", "gru" or "lstm".
        d_hidden: width of the layers before the last; by default D.
        start: Eq. 2 at the first steps, "equation" or "clipped"; `MultiChannelRNN` explains this and the next two.
        phase: where a channel's blocks begin, "equation" or "text".
        mapping_start: how W_j starts, "identity" or "uniform".
        dropout: on the output of each layer, the same units at all steps of a call.
        dropout_input: on the input, in the same way, as in AWD-LSTM.
        dropout_hidden: between the layers. If it is given, `dropout` is on the last output only.
        weight_dropout: DropConnect on the recurrent matrices, the same weights at all steps of a call.
        weight_dropout_on: "all" recurrent matrices, or those of the "cell" without W_j.
    """

    stateful = True
    auxiliary_losses = ("activations",)

    def __init__(
        self,
        d_model: int,
        layers: int = 1,
        block: int = 4,
        cell: str = "lstm",
        d_hidden: int | None = None,
        start: str = "equation",
        phase: str = "equation",
        mapping_start: str = "identity",
        dropout: float = 0.0,
        dropout_input: float = 0.0,
        dropout_hidden: float | None = None,
        weight_dropout: float = 0.0,
        weight_dropout_on: str = "all",
    ) -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        hidden = check_positive("d_hidden", d_model if d_hidden is None else d_hidden)
        widths = chain([d_model], repeat(hidden, check_positive("layers", layers) - 1), [d_model])
        options = (block, cell, start, phase, mapping_start, weight_dropout, weight_dropout_on)
        self.layers = nn.ModuleList(MultiChannelRNN(below, own, *options) for below, own in pairwise(widths))
        self.dropout_input = LockedDropout(check_fraction("dropout_input", dropout_input))
        self.dropout = LockedDropout(dropout)
        between = dropout if dropout_hidden is None else check_fraction("dropout_hidden", dropout_hidden)
        self.dropout_hidden = LockedDropout(between)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has that of each layer: see `MultiChannelRNN.forward`."""
        self.check_input(x)
        raw, state = read_through(self.layers, self.dropout_input(x), state, self.dropout_hidden)
        return self.dropout(raw), state


CARD = Card(
    "mc-rnn",
    MCRNN,
    "Xu et al. (2019)",
    "Table 4, PTB words",
    {"d_model": 400, "layers": 3, "d_hidden": 1150, "block": 4},
)
