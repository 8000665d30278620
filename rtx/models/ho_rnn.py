"""HO-RNN: the last N states, instead of only one, feed the next state.

Soltani & Jiang (2016), Higher Order Recurrent Neural Networks; a baseline of Xu et al. (2019), MC-RNN.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models.backbone import Card, CausalModel
from rtx.nn.initial import uniform_parameter
from rtx.nn.recurrent import CELLS
from rtx.nn.streaming import State, check_state, read_through
from rtx.nn.validate import check_choice, check_fraction, check_positive


class HigherOrderRNN(nn.Module):
    """One layer: the sum W_h1 h_{t-1} + … + W_hN h_{t-N} takes the place of U h_{t-1} in the cell.

    The parameters have the names and initialisation of `torch.nn.RNN`, `GRU` and `LSTM`, with the W_hn side by side in
    `weight_hh_l0`. At order 1, the layer equals torch's and can load its state dict.

    The paper leaves open how cells with gates use the earlier states. Here an LSTM forgets c_{t-1}, and a GRU
    interpolates with h_{t-1}, as usual. The paper also proposes three other poolings, which are not here: the maximum
    of the products, a sum with decaying weights (FOFE), and a sum with gates.

    Args:
        d_model: D, width of the input and of the states.
        order: N, number of states that feed the next one.
        cell: "rnn", "gru" or "lstm".
    """

    def __init__(self, d_model: int, order: int = 3, cell: str = "lstm") -> None:
        super().__init__()
        self.d_model, self.order = check_positive("d_model", d_model), check_positive("order", order)
        self.cell = check_choice("cell", cell, CELLS)
        G, parameter = CELLS[cell].gates, partial(uniform_parameter, d_model)
        self.weight_ih_l0, self.weight_hh_l0 = parameter(G * d_model, d_model), parameter(G * d_model, order * d_model)
        self.bias_ih_l0, self.bias_hh_l0 = parameter(G * d_model), parameter(G * d_model)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has the last N hidden states, (B, N, D), and for an LSTM c, (B, D)."""
        zeros = x.new_zeros(x.shape[0], self.order, self.d_model)
        begin = (zeros, zeros[:, 0]) if self.cell == "lstm" else (zeros,)
        state = begin if state is None else state
        check_state(state, *(part.shape for part in begin))
        past, *c = state
        projected = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)
        states = []
        for from_input in projected.unbind(1):
            # h_t = f(W_in x_t + Σ W_hn h_{t-n})
            from_past = F.linear(past.flatten(1), self.weight_hh_l0, self.bias_hh_l0)
            h, *c = CELLS[self.cell].step(from_input, from_past, (past[:, 0], *c))
            past = torch.cat([h[:, None], past[:, :-1]], 1)  # the youngest first
            states.append(h)
        return torch.stack(states, 1), (past, *c)

    def extra_repr(self) -> str:
        """Return what `print(model)` shows."""
        return f"d_model={self.d_model}, order={self.order}, cell={self.cell!r}"


class HORNN(CausalModel):
    """A stack of higher-order layers.

    A layer of LSTM cells has 4 D² parameters more for each order above 1. Xu et al. print no order. In their Table 2 (2
    layers of 256) HO-RNN has 5 M parameters more than the baseline, and in Table 3 (4 layers) 10 M. Order 4 gives 4.7 M
    and 9.4 M in an encoder of two directions and a decoder.

    Args:
        d_model: D, width of every layer.
        layers: L.
        order: N, number of states that feed the next one.
        cell: "rnn" is the paper's; "lstm", as in Xu et al.; or "gru".
        dropout: on the output of each layer.
    """

    stateful = True

    def __init__(self, d_model: int, layers: int = 1, order: int = 3, cell: str = "lstm", dropout: float = 0.0) -> None:
        super().__init__()
        check_positive("layers", layers), check_fraction("dropout", dropout)
        self.d_model = check_positive("d_model", d_model)
        self.layers = nn.ModuleList(HigherOrderRNN(d_model, order, cell) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has that of each layer: see `HigherOrderRNN.forward`."""
        self.check_input(x)
        y, state = read_through(self.layers, x, state, self.dropout)
        return self.dropout(y), state


CARD = Card(
    "ho-rnn",
    HORNN,
    "Soltani & Jiang (2016)",
    "Xu et al., Table 2, IWSLT14; the order is ours",
    {"d_model": 256, "layers": 2, "order": 4},
)
