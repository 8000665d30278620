"""MC-RNN: recurrent channels that each cut the text into other blocks, joined at every step by attention.

Xu et al. (2019), Modeling Local Dependence in Natural Language with Multi-Channel Recurrent Neural Networks.
"""

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from rtx.nn.dropout import LockedDropout
from rtx.nn.multi_channel import MultiChannelRNN
from rtx.nn.state import State, read_through
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step


class MCRNN(nn.Module):
    """A stack of multi-channel layers; only the attention's mean of a layer's channels reaches the next.

    Parameters: at width 256, block 4 and LSTM, the two encoder and two decoder layers of Table 2 have 1.3 M more
    than plain LSTM layers, attention included (4 · (3 · 256² + 2 · 256² + 256) = 1,311,744), where the table says
    4 M. One W_j per gate gives 3.7 M (4 · (12 · 256² + 2 · 256² + 256) = 3,671,040), nearer to it. With an encoder
    of two directions, as in `Seq2Seq` here (the paper does not say), it is six layers, and 2.0 M and 5.5 M.

    Args:
        d_model: D, width of the input and of the last layer.
        layers: L.
        block: n, nodes in a block; a layer has n - 1 channels. The paper's MC-RNN-3 is n = 4.
        cell: "rnn", "gru" or "lstm".
        d_hidden: width of the layers before the last; D if not given.
        start: Eq. 2 at the first steps, "equation" or "clipped"; see `rtx.nn.multi_channel`, also for the next four.
        phase: where a channel's blocks begin, "equation" or "text".
        cell_state: which c an LSTM's forget gate meets, "mean", "previous" or "mapped".
        mapping: one W_j "shared" by the gates, or "per-gate".
        mapping_start: W_j's start, "identity" or "uniform".
        dropout: on each layer's output, the same units at all steps of a read.
        dropout_input: on the input, in the same way, as in AWD-LSTM.
        dropout_hidden: between the layers, in place of `dropout`, which then is on the last one's output alone.
        weight_dropout: DropConnect on the recurrent matrices, the same weights at all steps of a read.
        weight_dropout_on: "all" of them, or those of the "cell" alone and not W_j.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        layers: int = 1,
        block: int = 4,
        cell: str = "lstm",
        d_hidden: int | None = None,
        start: str = "equation",
        phase: str = "equation",
        cell_state: str = "mean",
        mapping: str = "shared",
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
        widths = [d_model, *[hidden] * (check_positive("layers", layers) - 1), d_model]
        switches = (start, phase, cell_state, mapping, mapping_start)
        options = (block, cell, *switches, weight_dropout, weight_dropout_on)
        self.layers = nn.ModuleList(MultiChannelRNN(below, own, *options) for below, own in pairwise(widths))
        self.dropout_input = LockedDropout(check_fraction("dropout_input", dropout_input))
        self.dropout = LockedDropout(dropout)
        between = dropout if dropout_hidden is None else check_fraction("dropout_hidden", dropout_hidden)
        self.dropout_hidden = LockedDropout(between)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """A piece of a stream, and the state behind it: each layer's last n - 1 states per channel, and the steps read.

        Raises:
            ValueError: as `forward`, or if `state` is another model's or batch's.
        """
        raw, state = self.activations(x, state)
        return self.dropout(raw), state

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        y, state = self.read(x[:, None], state)
        return y.squeeze(1), state

    def activations(
        self, x: Float[Tensor, "B T D"], state: State | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        """As `read`, before the last dropout: what `rtx.models.awd_lstm.activation_penalty` takes.

        Raises:
            ValueError: as `read`.
        """
        check_sequence("x", x, self.d_model, like=next(self.parameters()))
        return read_through(self.layers, self.dropout_input(x), state, self.dropout_hidden)
