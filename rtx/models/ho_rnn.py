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
from rtx.nn.validate import check_choice, check_fraction, check_positive, is_number

POOLINGS = ("sum", "max", "fofe", "gated")


class HigherOrderRNN(nn.Module):
    """One layer: W_h1 h_{t-1} … W_hN h_{t-N} are pooled and take the place of U h_{t-1} in the cell.

    The parameters have the names and initialisation of `torch.nn.RNN`, `GRU` and `LSTM`, with the W_hn side by side in
    `weight_hh_l0`. At order 1 with the sum, the layer equals torch's and can load its state dict.

    The paper leaves some points open. Here the powers of α start at 1, the gates have no bias, and the maximum includes
    the zero products of the states before the start. An LSTM forgets c_{t-1} and a GRU interpolates with h_{t-1} as
    usual, and r_n gates the products of all gates of the cell.

    Args:
        d_model: D, width of the input and of the states.
        order: N, number of states that feed the next one.
        pooling: "sum", Σ W_hn h_{t-n}; "max", the largest product for each number; "fofe", Σ α^n W_hn h_{t-n};
            "gated", Σ r_n ∘ W_hn h_{t-n} with r_n = σ(W^g_1n x_t + W^g_2n h_{t-n}).
        cell: "rnn", "gru" or "lstm".
        forgetting: α of "fofe", in (0, 1]; its default is ours.
    """

    def __init__(
        self, d_model: int, order: int = 3, pooling: str = "sum", cell: str = "lstm", forgetting: float = 0.7
    ) -> None:
        super().__init__()
        self.d_model, self.order = check_positive("d_model", d_model), check_positive("order", order)
        self.pooling, self.cell = check_choice("pooling", pooling, POOLINGS), check_choice("cell", cell, CELLS)
        if not (is_number(forgetting) and 0 < forgetting <= 1):
            raise ValueError(f"forgetting: expected a number above 0, up to 1, got {forgetting!r}")
        self.forgetting = forgetting
        G, parameter = CELLS[cell].gates, partial(uniform_parameter, d_model)
        self.weight_ih_l0, self.weight_hh_l0 = parameter(G * d_model, d_model), parameter(G * d_model, order * d_model)
        self.bias_ih_l0, self.bias_hh_l0 = parameter(G * d_model), parameter(G * d_model)
        if pooling == "gated":
            self.gate_input = parameter(order * d_model, d_model)  # W^g_11 … W^g_1N, one below the other
            self.gate_state = parameter(order, d_model, d_model)  # W^g_21 … W^g_2N

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has the last N hidden states, (B, N, D), and for an LSTM c, (B, D)."""
        past, *c = self._zeros(x) if state is None else self._checked(state, x.shape[0])
        projected = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)
        gates = F.linear(x, self.gate_input) if self.pooling == "gated" else x
        states = []
        for from_input, from_gate in zip(projected.unbind(1), gates.unbind(1), strict=True):
            pooled = self._pool(past, from_gate) + self.bias_hh_l0
            # h_t = f(W_in x_t + pooled)
            h, *c = CELLS[self.cell].step(from_input, pooled, (past[:, 0], *c))
            past = torch.cat([h[:, None], past[:, :-1]], 1)  # the youngest first
            states.append(h)
        return torch.stack(states, 1), (past, *c)

    def _pool(self, past: Tensor, from_gate: Tensor) -> Float[Tensor, "B G"]:
        """Return what the last N states contribute to each gate of the cell."""
        if self.pooling == "sum":
            return F.linear(past.flatten(1), self.weight_hh_l0)
        if self.pooling == "fofe":
            n = torch.arange(1, self.order + 1, device=past.device)
            return F.linear((self.forgetting ** n[:, None].to(past.dtype) * past).flatten(1), self.weight_hh_l0)
        w = self.weight_hh_l0.unflatten(1, (self.order, -1))  # (gates · D, N, D)
        products = torch.einsum("bnd,gnd->bng", past, w)
        if self.pooling == "max":
            return products.amax(1)
        from_past = torch.einsum("bnd,ned->bne", past, self.gate_state)
        r = torch.sigmoid(from_gate.unflatten(1, (self.order, -1)) + from_past)
        return (products.unflatten(2, (-1, self.d_model)) * r[:, :, None]).sum(1).flatten(1)

    def _zeros(self, x: Tensor) -> State:
        past = x.new_zeros(x.shape[0], self.order, self.d_model)
        return (past, past[:, 0]) if self.cell == "lstm" else (past,)

    def _checked(self, state: State, batch: int) -> State:
        check_state(state, (batch, self.order, self.d_model), *[(batch, self.d_model)] * (self.cell == "lstm"))
        return state

    def extra_repr(self) -> str:
        """Return what `print(model)` shows."""
        return f"d_model={self.d_model}, order={self.order}, pooling={self.pooling!r}, cell={self.cell!r}"


class HORNN(CausalModel):
    """A stack of higher-order layers.

    A layer of LSTM cells has 4 D² parameters more for each order above 1. Xu et al. print no order. In their Table 2 (2
    layers of 256) HO-RNN has 5 M parameters more than the baseline, and in Table 3 (4 layers) 10 M. Order 4 gives 4.7 M
    and 9.4 M in an encoder of two directions and a decoder.

    Args:
        d_model: D, width of every layer.
        layers: L.
        order: N, number of states that feed the next one.
        pooling: "sum", "max", "fofe" or "gated"; see `HigherOrderRNN`.
        cell: "rnn" is the paper's; "lstm", as in Xu et al.; or "gru".
        forgetting: α of "fofe".
        dropout: on the output of each layer.
    """

    stateful = True

    def __init__(
        self,
        d_model: int,
        layers: int = 1,
        order: int = 3,
        pooling: str = "sum",
        cell: str = "lstm",
        forgetting: float = 0.7,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_positive("layers", layers), check_fraction("dropout", dropout)
        self.d_model = check_positive("d_model", d_model)
        self.layers = nn.ModuleList(HigherOrderRNN(d_model, order, pooling, cell, forgetting) for _ in range(layers))
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
