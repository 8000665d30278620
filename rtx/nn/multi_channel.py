"""One MC-RNN layer: several recurrent channels that cut the past into staggered blocks, and attention over them.

Xu et al. (2019), Modeling Local Dependence in Natural Language with Multi-Channel Recurrent Neural Networks, Eq. 1-6.
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.kernels.multi_channel import channels
from rtx.nn.kernels.multi_channel_plain import Wiring
from rtx.nn.recurrent import CELLS
from rtx.nn.state import State, check_state
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_sequence


class MultiChannelRNN(nn.Module):
    """n - 1 channels that share all parameters; in each a state reads all earlier states of its block of n.

    Blocks join end to end, a block's last node being the next one's first. The cell's parameters are named, shaped
    and initialised as those of `torch.nn.RNN`, `GRU` and `LSTM`. With one channel, n = 2, and W_1 at its start, the
    layer is torch's; the attention then has nothing to choose from, and its weights get no gradient.

    Where the paper is silent: states before the start are zero in c as in h. A GRU, h = (1 - z) n + z s,
    interpolates with s. Where each gate has its own W_j, the s or c that is no gate's input takes the candidate's.

    Args:
        d_model: N_x, width of the input.
        d_hidden: N_h, width of the states and the output; N_x if not given.
        block: n, nodes in a block, one more than there are channels; at least 2.
        cell: "rnn", "gru" or "lstm".
        start: "equation" counts, in the mean of Eq. 2, predecessors before the sequence too, which damps the first
            steps; "clipped" leaves them out, m = min(m, t - 1), with s = 0 at t = 1.
        phase: "equation" begins the blocks of channel k where t ≡ k (mod n - 1), "text" (§3.1) at t = 2 - k. Up to
            n = 3 they agree, at n = 4 channels 2 and 3 change places.
        cell_state: which c an LSTM's forget gate meets: "mean" of the predecessors' c, "previous" c_{t-1}, or
            "mapped", the mean through the W_j of h.
        mapping: "shared", one W_j for all gates, or "per-gate".
        mapping_start: W_j begins as "identity", or "uniform" in ±1/√N_h as the other matrices.
        weight_dropout: DropConnect, the share of the recurrent weights hidden for a whole read.
        weight_dropout_on: which these are, where the paper says hidden-to-hidden: "all", those of W_j and of the cell,
            or of the "cell" alone, as in AWD-LSTM.

    Raises:
        ValueError: if an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        d_hidden: int | None = None,
        block: int = 4,
        cell: str = "lstm",
        start: str = "equation",
        phase: str = "equation",
        cell_state: str = "mean",
        mapping: str = "shared",
        mapping_start: str = "identity",
        weight_dropout: float = 0.0,
        weight_dropout_on: str = "all",
    ) -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        self.d_hidden = check_positive("d_hidden", d_model if d_hidden is None else d_hidden)
        if check_positive("block", block) < 2:
            raise ValueError(f"block: expected a whole number of at least 2, got {block!r}")
        self.predecessors = block - 1  # of a node, at most; there are as many channels
        self.cell = check_choice("cell", cell, CELLS)
        self.start = check_choice("start", start, ("equation", "clipped"))
        self.phase = check_choice("phase", phase, ("equation", "text"))
        self.cell_state = check_choice("cell_state", cell_state, ("mean", "previous", "mapped"))
        self.mapping = check_choice("mapping", mapping, ("shared", "per-gate"))
        check_choice("mapping_start", mapping_start, ("identity", "uniform"))
        self.weight_dropout = check_fraction("weight_dropout", weight_dropout)
        self.weight_dropout_on = check_choice("weight_dropout_on", weight_dropout_on, ("all", "cell"))
        H, G, parameter = self.d_hidden, CELLS[cell].gates, partial(uniform_parameter, self.d_hidden)
        self.weight_ih_l0, self.weight_hh_l0 = parameter(G * H, d_model), parameter(G * H, H)
        self.bias_ih_l0, self.bias_hh_l0 = parameter(G * H), parameter(G * H)
        maps = G if mapping == "per-gate" else 1
        self.weight_block = parameter(self.predecessors, maps * H, H)  # W_1 … W_{n-1}, the gates' below one another
        if mapping_start == "identity":
            with torch.no_grad():
                self.weight_block.copy_(torch.eye(H).repeat(maps, 1))
        self.attention_v = nn.Linear(H + d_model, H, bias=False)
        self.attention_r = nn.Linear(H, 1, bias=False)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T H"], State]:
        """Map a piece of a stream; the state behind it is h, an LSTM's c, and how many steps were read.

        h and c hold the last n - 1 states of each channel, (B, n-1, n-1, H), the youngest first.

        Raises:
            ValueError: if `x` or `state` is not of this layer.
        """
        states, state = self._run(x, state, self.weight_dropout if self.training else 0.0)
        weights = self._channel_weights(states, x)
        return (weights[..., None] * states).sum(2), state  # Eq. (4)

    def channels(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T C H"]:
        """The states h_t^k of all channels, before attention joins them and without dropout.

        Raises:
            ValueError: as `forward`.
        """
        return self._run(x, state, 0.0)[0]

    def inside(self, x: Float[Tensor, "B T D"], state: State | None = None) -> dict[str, Tensor]:
        """What `forward` computes from the same arguments, without dropout.

        Returns:
            "channels": h_t^k, (B, T, C, H); "channel_weights": α_t^k, (B, T, C); "in_degrees": m_t^k, (T, C).

        Raises:
            ValueError: as `forward`.
        """
        states = self.channels(x, state)
        return {
            "channels": states,
            "channel_weights": self._channel_weights(states, x),
            "in_degrees": self.in_degrees(x.shape[1], 0 if state is None else state[-1]),
        }

    def in_degrees(self, length: int, read: int = 0) -> Int[Tensor, "T C"]:
        """m_t^k, how many predecessors the node at step t of channel k is connected to.

        Args:
            length: T, steps.
            read: steps before them.
        """
        return torch.tensor(self._in_degrees(length, read), device=self.weight_block.device)

    def _in_degrees(self, length: int, read: int) -> tuple[tuple[int, ...], ...]:
        rows = []
        for t in range(read + 1, read + length + 1):
            begins = [k if self.phase == "equation" else 2 - k for k in range(1, self.predecessors + 1)]
            m = ((t - begin - 1) % self.predecessors + 1 for begin in begins)  # Eq. (1)
            rows.append(tuple(m if self.start == "equation" else (min(one, t - 1) for one in m)))
        return tuple(rows)

    def _run(self, x: Tensor, state: State | None, dropout: float) -> tuple[Tensor, State]:
        """All channels' states (B, T, C, H), and what is remembered."""
        check_sequence("x", x, self.d_model, like=self.weight_ih_l0)
        *rings, read = self._zeros(x) if state is None else self._checked(state, x.shape[0])
        w = F.dropout(self.weight_block, dropout if self.weight_dropout_on == "all" else 0.0)
        u = F.dropout(self.weight_hh_l0, dropout)
        states, *rings = channels(
            x,
            tuple(rings),
            self.weight_ih_l0,
            self.bias_ih_l0,
            u,
            self.bias_hh_l0,
            w,
            Wiring(self._in_degrees(x.shape[1], read), self.cell, self.cell_state, self.mapping),
        )
        return states, (*rings, read + x.shape[1])

    def _channel_weights(self, states: Tensor, x: Tensor) -> Float[Tensor, "B T C"]:
        # Eq. (6): V [h; x] = V_h h + V_x x, the second the same in all channels
        v_h, v_x = self.attention_v.weight.split([self.d_hidden, self.d_model], 1)
        mixed = torch.tanh(F.linear(states, v_h) + F.linear(x, v_x)[:, :, None])
        energies = self.attention_r(mixed).squeeze(-1)
        wide = torch.promote_types(energies.dtype, torch.float32)
        # Eq. (5), wide under a CPU's autocast, too: channels are much alike, and V and r learn from what differs alone
        return energies.softmax(-1, dtype=wide).to(x.dtype)

    def _zeros(self, x: Tensor) -> State:
        zeros = x.new_zeros(x.shape[0], self.predecessors, self.predecessors, self.d_hidden)
        return (*[zeros] * CELLS[self.cell].parts, 0)

    def _checked(self, state: State, batch: int) -> State:
        ring = (batch, self.predecessors, self.predecessors, self.d_hidden)
        check_state(state, *[ring] * CELLS[self.cell].parts, None)
        return state

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"d_model={self.d_model}, d_hidden={self.d_hidden}, block={self.predecessors + 1}, cell={self.cell!r}"
