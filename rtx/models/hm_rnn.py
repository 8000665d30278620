"""HM-RNN: layers that learn where a segment ends, and update the layer above only there.

Chung, Ahn & Bengio (2017), Hierarchical Multiscale Recurrent Neural Networks, in its LSTM form; a baseline of Xu et
al. (2019), MC-RNN.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.models.backbone import Card, CausalModel
from rtx.nn.initial import uniform_parameter
from rtx.nn.streaming import State, check_state, split
from rtx.nn.validate import check_fraction, check_positive

OPERATIONS = ("update", "copy", "flush")
"""A layer's three operations, in the order of the numbers that `introspect` returns."""


class Level(nn.Module):
    """One layer's parameters and its step. The gates are in torch's order, i, f, g, o; the boundary's row is last.

    Args:
        d_model: D, width of the states, of the layer below and of the layer above.
        top: whether this is the top layer, which has no boundary and no layer above it.
    """

    def __init__(self, d_model: int, top: bool) -> None:
        super().__init__()
        self.d_model, self.top = d_model, top
        rows, parameter = 4 * d_model + (not top), partial(uniform_parameter, d_model)
        self.bottom_up, self.recurrent, self.bias = parameter(rows, d_model), parameter(rows, d_model), parameter(rows)
        if not top:
            self.top_down = parameter(rows, d_model)
            with torch.no_grad():
                self.bias[-1] = 0.0  # below 0 the boundary might never open, and the layers above would not be trained

    def forward(
        self, below: Tensor, z_below: Tensor, state: State, h_above: Tensor | None, slope: float
    ) -> tuple[Tensor, ...]:
        """Return h and c after a step, (B, D), and below the top also the boundary, (B, 1).

        Args:
            below: h_t^{l-1}, (B, D).
            z_below: z_t^{l-1}, (B, 1).
            state: h_{t-1}, c_{t-1} and z_{t-1} of this layer; the top layer has no z.
            h_above: h_{t-1}^{l+1}; None at the top.
            slope: a of the hard sigmoid.
        """
        h, c, *boundary = state
        z = boundary[0] if boundary else torch.zeros_like(z_below)
        # Eq. (4)-(7): a closed boundary multiplies by 0
        s = F.linear(h, self.recurrent, self.bias) + z_below * F.linear(below, self.bottom_up)
        if h_above is not None:
            s = s + z * F.linear(h_above, self.top_down)
        i, f, g, o = s[:, : 4 * self.d_model].chunk(4, -1)
        new, kept = torch.sigmoid(i) * torch.tanh(g), torch.sigmoid(f) * c
        update, copy, flush = operations(z, z_below)
        c_t = update * (kept + new) + copy * c + flush * new  # Eq. (2)
        h_t = copy * h + (1 - copy) * torch.sigmoid(o) * torch.tanh(c_t)  # Eq. (3)
        return (h_t, c_t) if self.top else (h_t, c_t, boundary_of(s[:, -1:], slope))


def operations(z: Tensor, z_below: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return update, copy and flush: 1 for the one that Eq. 2 selects by z_{t-1}^l and z_t^{l-1}, else 0."""
    return (1 - z) * z_below, (1 - z) * (1 - z_below), z


def boundary_of(s: Tensor, slope: float) -> Tensor:
    """Return 1 where the hard sigmoid of `s` is above 1/2, else 0, with the gradient of the hard sigmoid (Eq. 8-9)."""
    soft = ((slope * s + 1) / 2).clamp(0, 1)
    # The hard sigmoid is above 1/2 where s is above 0. In half precision 1 + s would lose a small s.
    return soft + ((s > 0).to(soft.dtype) - soft).detach()  # exactly 0 or 1: no rounding


class HMRNN(CausalModel):
    """A stack of LSTM layers. All but the top one have a binary boundary that says where their segments end.

    A layer updates its state when a segment of the layer below ends, and copies it otherwise. After the end of one of
    its own segments it is flushed: its memory c is erased, and its gates also read the layer above. All layers feed the
    output, each through a gate.

    The paper leaves some points open. Here h, c and z are zero before the start. At a copy the boundary is computed
    from the copied state. A gradient reaches a boundary wherever it multiplies or selects. The biases of the boundaries
    start at 0, all else as in torch's LSTM. Two things differ from the paper: it has layer normalisation (in all its
    rows on PTB), and an input embedding of width 128; ours has width D.

    A layer below the top has 4 D² parameters more than an LSTM, because it also reads the layer above. So HM-RNN has
    more parameters than an LSTM of its width and depth. Table 3 of Xu et al. prints fewer: 35 M for HM-RNN and 36 M for
    the LSTM. We cannot explain this.

    Args:
        d_model: D, width of the input, of every layer and of the output.
        layers: L.
        dropout: on the output.

    Attributes:
        slope: a of the boundaries' hard sigmoid, at first 1. It changes gradients but never outputs.
    """

    stateful = True

    def __init__(self, d_model: int, layers: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, L = check_positive("d_model", d_model), check_positive("layers", layers)
        self.levels = nn.ModuleList(Level(d_model, top=level == L - 1) for level in range(L))
        self.output_gates = nn.Linear(L * d_model, L, bias=False)  # w^1 … w^L
        self.output = nn.Linear(L * d_model, d_model, bias=False)  # W_1^e … W_L^e side by side
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.slope = 1.0

    def start_epoch(self, epoch: int) -> None:
        """Anneal the slope: a = min(5, 1 + 0.04 epoch), the paper's schedule for PTB, with epochs counted from 0.

        The paper calls the number "the maximum number of epochs", which we read as the current one. For tasks other
        than PTB and handwriting it keeps the slope at 1.
        """
        self.slope = min(5.0, 1 + 0.04 * epoch)

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """Read a piece of a stream. The state has h and c of each layer, (B, D), and below the top also z, (B, 1)."""
        self.check_input(x)
        h, _, state = self._run(x, state)
        return self.dropout(self._join(h)), state

    def introspect(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """Return what `forward` computes.

        Returns:
            "states": h, (B, T, L, D); "boundaries": z of all layers but the top, (B, T, L-1); "operations": the
            operation of each layer as an index into `OPERATIONS`, (B, T, L); "output_gates": g, (B, T, L).
        """
        h, z, _ = self._run(x, None)
        before = F.pad(z, (0, 1, 1, 0))[:, :-1]  # z_{t-1}^l, the top's zero
        below = F.pad(z, (1, 0), value=1.0)  # z_t^{l-1}, the input's one
        chosen = torch.stack(operations(before, below)).argmax(0)
        gates = torch.sigmoid(self.output_gates(h.flatten(2)))
        return {"states": h, "boundaries": z, "operations": chosen, "output_gates": gates}

    def _run(self, x: Tensor, state: State | None) -> tuple[Tensor, Tensor, State]:
        """Return h of all layers, (B, T, L, D), z of all but the top, (B, T, L-1), and the next state."""
        h, z, L = x.new_zeros(x.shape[0], self.d_model), x.new_zeros(x.shape[0], 1), len(self.levels)
        state = (*[(h, h, z)] * (L - 1), (h, h)) if state is None else state
        for i, part in enumerate(split(state, L)):
            check_state(part, h.shape, h.shape, *[z.shape] * (i < L - 1))
        open_below, hidden, boundaries = x.new_ones(x.shape[0], 1), [], []
        for x_t in x.unbind(1):
            after: list[tuple[Tensor, ...]] = []
            for i, level in enumerate(self.levels):
                below = after[-1][0] if i else x_t
                z_below = after[-1][2] if i else open_below  # z^0 = 1: the input is always read
                h_above = state[i + 1][0] if i + 1 < len(state) else None
                after.append(level(below, z_below, state[i], h_above, self.slope))
            state = tuple(after)
            hidden.append(torch.stack([part[0] for part in after], 1))
            boundaries.append(torch.cat([open_below[:, :0], *(part[2] for part in after[:-1])], 1))
        return torch.stack(hidden, 1), torch.stack(boundaries, 1), state

    def _join(self, h: Float[Tensor, "B T L D"]) -> Float[Tensor, "B T D"]:
        """Return the output embedding of the states of all layers."""
        gates = torch.sigmoid(self.output_gates(h.flatten(2)))  # Eq. (11)
        return torch.relu(self.output((gates[..., None] * h).flatten(2)))  # Eq. (12)


CARD = Card("hm-rnn", HMRNN, "Chung, Ahn & Bengio (2017)", "Table 1, PTB characters", {"d_model": 512, "layers": 3})
