"""HM-RNN: layers that find out by themselves where a segment ends, and work only there.

Chung, Ahn & Bengio (2017), Hierarchical Multiscale Recurrent Neural Networks, in its LSTM form; a baseline of Xu et
al. (2019), MC-RNN.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.state import State, check_state, split
from rtx.nn.validate import check_fraction, check_positive, check_sequence, check_step

OPERATIONS = ("update", "copy", "flush")
"""A layer's three operations, in the order of the numbers that `inside` shows."""


class Level(nn.Module):
    """One layer's parameters and its step. Gates in the order of torch's LSTM, i, f, g, o; the boundary's row last.

    Args:
        d_model: D, width of the states, of the layer below and of the layer above.
        top: the top layer has no boundary and nothing above it.
    """

    def __init__(self, d_model: int, top: bool) -> None:
        super().__init__()
        self.d_model, self.top = d_model, top
        rows, parameter = 4 * d_model + (not top), partial(uniform_parameter, d_model)
        self.bottom_up, self.recurrent, self.bias = parameter(rows, d_model), parameter(rows, d_model), parameter(rows)
        if not top:
            self.top_down = parameter(rows, d_model)
            with torch.no_grad():
                self.bias[-1] = 0.0  # below 0 a layer could stay closed from the start, and what is above it untrained

    def forward(
        self, from_below: Tensor, z_below: Tensor, state: State, h_above: Tensor | None, slope: float
    ) -> tuple[Tensor, ...]:
        """h and c after a step, (B, D), and below the top the boundary, (B, 1).

        Args:
            from_below: W h_t^{l-1}, the bottom-up product, not yet gated.
            z_below: z_t^{l-1}, (B, 1).
            state: h_{t-1}, c_{t-1} and z_{t-1} of this layer; at the top z is left out, and is zero.
            h_above: h_{t-1}^{l+1}; None at the top.
            slope: a of the hard sigmoid.
        """
        h, c, *boundary = state
        z = boundary[0] if boundary else torch.zeros_like(z_below)
        # Eq. (4)-(7); what the boundaries close is multiplied by 0
        s = F.linear(h, self.recurrent, self.bias) + z_below * from_below
        if h_above is not None:
            s = s + z * F.linear(h_above, self.top_down)
        i, f, g, o = s[:, : 4 * self.d_model].chunk(4, -1)
        new, kept = torch.sigmoid(i) * torch.tanh(g), torch.sigmoid(f) * c
        update, copy, flush = operations(z, z_below)
        c_t = update * (kept + new) + copy * c + flush * new  # Eq. (2)
        h_t = copy * h + (1 - copy) * torch.sigmoid(o) * torch.tanh(c_t)  # Eq. (3)
        return (h_t, c_t) if self.top else (h_t, c_t, boundary_of(s[:, -1:], slope))


def operations(z: Tensor, z_below: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """1 for the operation that Eq. 2 selects, 0 for the two others, from z_{t-1}^l and z_t^{l-1}."""
    return (1 - z) * z_below, (1 - z) * (1 - z_below), z


def boundary_of(s: Tensor, slope: float) -> Tensor:
    """Eq. 8-9: 1 where the hard sigmoid of `s` is above 1/2, else 0. Its gradient is the hard sigmoid's own."""
    soft = ((slope * s + 1) / 2).clamp(0, 1)
    # above 1/2 where s is above 0, which is asked of s: the sum with 1 loses a small one, in half precision many
    return soft + ((s > 0).to(soft.dtype) - soft).detach()  # exactly 0 or 1: neither sum rounds


class HMRNN(nn.Module):
    """A stack of LSTM layers, each with a binary boundary that says where its segments end.

    A layer updates when a segment below it ends, copies its state when none does, and after an end of its own is
    flushed: its past erased, the layer above read instead. All layers feed the output, each through a gate.

    Where the paper is silent: h, c and z are zero before the start. At a copy the boundary is computed too, from the
    copied state. A gradient reaches a boundary wherever it multiplies or selects. The boundaries' biases start at 0,
    all else as in torch's LSTM. The output embedding has width D. Its layer normalisation is left out.

    Parameters: a layer below the top has 4 D² more than an LSTM's, for what comes down from above. So HM-RNN cannot
    have fewer than the LSTM baseline, as in Table 3 of Xu et al. (35 M and 36 M).

    Args:
        d_model: D, width of the input, of every layer and of the output.
        layers: L.
        dropout: on the output.

    Attributes:
        slope: a of the boundaries' hard sigmoid, 1 at first. It changes gradients, never outputs.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(self, d_model: int, layers: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, L = check_positive("d_model", d_model), check_positive("layers", layers)
        self.levels = nn.ModuleList(Level(d_model, top=level == L - 1) for level in range(L))
        self.output_gates = nn.Linear(L * d_model, L, bias=False)  # w^1 … w^L
        self.output = nn.Linear(L * d_model, d_model, bias=False)  # W_1^e … W_L^e side by side
        self.dropout = nn.Dropout(check_fraction("dropout", dropout))
        self.slope = 1.0

    def anneal(self, epoch: int) -> None:
        """Slope annealing: a = min(5, 1 + 0.04 epoch), the paper's schedule for PTB, with epochs counted from 0."""
        self.slope = min(5.0, 1 + 0.04 * epoch)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Map a sequence to one of the same shape; position t depends on positions 1 … t only.

        Raises:
            ValueError: if `x` has the wrong rank, width, dtype or device, or is empty.
        """
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T D"], State]:
        """A piece of a stream, and the state behind it: h and c of each layer, (B, D), and below the top z, (B, 1).

        Raises:
            ValueError: as `forward`, or if `state` is another model's or batch's.
        """
        h, _, state = self._run(x, state)
        return self.dropout(self._join(h)), state

    def step(self, x: Float[Tensor, "B D"], state: State | None = None) -> tuple[Float[Tensor, "B D"], State]:
        """One position of a stream.

        Raises:
            ValueError: if `x` is not (B, D), or `state` is another model's or batch's.
        """
        check_step("x", x, self.d_model, like=next(self.parameters()))
        y, state = self.read(x[:, None], state)
        return y.squeeze(1), state

    def inside(self, x: Float[Tensor, "B T D"]) -> dict[str, Tensor]:
        """What `forward` computes from the same argument.

        Returns:
            "states": h, (B, T, L, D); "boundaries": z of all layers but the top, (B, T, L-1); "operations": what
            each layer does, a place in `OPERATIONS`, (B, T, L); "output_gates": g, (B, T, L).

        Raises:
            ValueError: as `forward`.
        """
        h, z, _ = self._run(x, None)
        before = F.pad(z, (0, 1, 1, 0))[:, :-1]  # z_{t-1}^l, the top's zero
        below = F.pad(z, (1, 0), value=1.0)  # z_t^{l-1}, the input's one
        chosen = torch.stack(operations(before, below)).argmax(0)
        gates = torch.sigmoid(self.output_gates(h.flatten(2)))
        return {"states": h, "boundaries": z, "operations": chosen, "output_gates": gates}

    def _run(self, x: Tensor, state: State | None) -> tuple[Tensor, Tensor, State]:
        """h of all layers at each step, (B, T, L, D), z of all but the top, (B, T, L-1), and the state behind."""
        check_sequence("x", x, self.d_model, like=self.output.weight)
        state = self._zeros(x) if state is None else self._checked(state, x.shape[0])
        open_below, hidden, boundaries = x.new_ones(x.shape[0], 1), [], []
        for from_input in F.linear(x, self.levels[0].bottom_up).unbind(1):  # type: ignore[arg-type]
            after: list[tuple[Tensor, ...]] = []
            for i, level in enumerate(self.levels):
                from_below = F.linear(after[-1][0], level.bottom_up) if i else from_input  # type: ignore[arg-type]
                z_below = after[-1][2] if i else open_below  # z^0 = 1: the input is never left out
                h_above = state[i + 1][0] if i + 1 < len(state) else None
                after.append(level(from_below, z_below, state[i], h_above, self.slope))
            state = tuple(after)
            hidden.append(torch.stack([part[0] for part in after], 1))
            boundaries.append(torch.cat([open_below[:, :0], *(part[2] for part in after[:-1])], 1))
        return torch.stack(hidden, 1), torch.stack(boundaries, 1), state

    def _join(self, h: Float[Tensor, "B T L D"]) -> Float[Tensor, "B T D"]:
        """The output embedding of all layers' states."""
        gates = torch.sigmoid(self.output_gates(h.flatten(2)))  # Eq. (11)
        return torch.relu(self.output((gates[..., None] * h).flatten(2)))  # Eq. (12)

    def _zeros(self, x: Tensor) -> State:
        h, z = x.new_zeros(x.shape[0], self.d_model), x.new_zeros(x.shape[0], 1)
        return (*[(h, h, z)] * (len(self.levels) - 1), (h, h))

    def _checked(self, state: State, batch: int) -> State:
        for level, part in zip(self.levels, split(state, len(self.levels)), strict=True):
            h = (batch, self.d_model)
            check_state(part, h, h, *[(batch, 1)] * (not level.top))
        return state
