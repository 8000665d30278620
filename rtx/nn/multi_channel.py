"""One MC-RNN layer: recurrent channels that cut the past into staggered blocks, and attention over the channels.

Xu et al. (2019), Modeling Local Dependence in Natural Language with Multi-Channel Recurrent Neural Networks, Eq. 1-6.
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rtx.nn.initial import uniform_parameter
from rtx.nn.ops.conditions import replaced
from rtx.nn.recurrent import CELLS
from rtx.nn.streaming import State, check_state
from rtx.nn.validate import check_choice, check_fraction, check_positive, check_sequence


class MultiChannelRNN(nn.Module):
    """n - 1 channels that share all parameters. In each, a state reads all earlier states of its block of n nodes.

    The last node of a block is the first node of the next one. The cell's parameters have the names, shapes and
    initialisation of `torch.nn.RNN`, `GRU` and `LSTM`. Before training, a layer with one channel, n = 2, equals torch's
    layer, because W_1 is the identity. Attention then has nothing to choose from, and its weights do not learn.

    The channels of n = 4 in the phase "equation". The numbers are m, how many predecessors a node reads. Where m = 3,
    one block ends and the next one begins:

        t          1  2  3  4  5  6  7
        channel 1  3  1  2  3  1  2  3
        channel 2  2  3  1  2  3  1  2
        channel 3  1  2  3  1  2  3  1

    The paper leaves some points open. Here, h and c are zero before the sequence, and all gates share the W_j. The
    forget gate of an LSTM multiplies the mean of the predecessors' c. A GRU computes h = (1 - z) n + z s.

    Args:
        d_model: D, width of the input (N_x in the paper).
        d_hidden: H, width of the states and of the output (N_h); by default D.
        block: n, number of nodes in a block, one more than there are channels; at least 2.
        cell: "rnn", "gru" or "lstm".
        start: "equation" also counts predecessors before the sequence in the mean of Eq. 2, which makes the first
            states smaller. "clipped" leaves them out, m = min(m, t - 1), with s = 0 at t = 1.
        phase: "equation" begins the blocks of channel k where t ≡ k (mod n - 1), "text" (§3.1) at t = 2 - k. They are
            the same up to n = 3. At n = 4 channels 2 and 3 are swapped.
        mapping_start: W_j starts as "identity", or "uniform" in ±1/√H like the other matrices.
        weight_dropout: DropConnect, the probability that a recurrent weight is hidden for a whole call.
        weight_dropout_on: which weights are hidden. The paper says hidden-to-hidden. "all" are those of W_j and of the
            cell; "cell" are those of the cell only, as in AWD-LSTM.
    """

    def __init__(
        self,
        d_model: int,
        d_hidden: int | None = None,
        block: int = 4,
        cell: str = "lstm",
        start: str = "equation",
        phase: str = "equation",
        mapping_start: str = "identity",
        weight_dropout: float = 0.0,
        weight_dropout_on: str = "all",
    ) -> None:
        super().__init__()
        self.d_model = check_positive("d_model", d_model)
        self.d_hidden = check_positive("d_hidden", d_model if d_hidden is None else d_hidden)
        if check_positive("block", block) < 2:
            raise ValueError(f"block: expected a whole number of at least 2, got {block!r}")
        self.predecessors = self.channel_count = block - 1  # predecessors of a node, at most
        self.cell = check_choice("cell", cell, CELLS)
        self.start = check_choice("start", start, ("equation", "clipped"))
        self.phase = check_choice("phase", phase, ("equation", "text"))
        check_choice("mapping_start", mapping_start, ("identity", "uniform"))
        self.weight_dropout = check_fraction("weight_dropout", weight_dropout)
        self.weight_dropout_on = check_choice("weight_dropout_on", weight_dropout_on, ("all", "cell"))
        H, G, parameter = self.d_hidden, CELLS[cell].gates, partial(uniform_parameter, self.d_hidden)
        self.weight_ih_l0, self.weight_hh_l0 = parameter(G * H, d_model), parameter(G * H, H)
        self.bias_ih_l0, self.bias_hh_l0 = parameter(G * H), parameter(G * H)
        self.weight_block = parameter(self.predecessors, H, H)  # W_1 … W_{n-1}
        if mapping_start == "identity":
            with torch.no_grad():
                self.weight_block.copy_(torch.eye(H))
        self.attention_v = nn.Linear(H + d_model, H, bias=False)
        self.attention_r = nn.Linear(H, 1, bias=False)

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T H"], State]:
        """Read a piece of a stream; return the outputs and the next state.

        The state has h, for an LSTM also c, and the number of steps so far. h and c are the last n - 1 states of each
        of the C = n - 1 channels, (B, C, n-1, H), the youngest first.
        """
        check_sequence("x", x, self.d_model)
        states, state = self._run(x, state, self.weight_dropout if self.training else 0.0)
        weights = self._channel_weights(states, x)
        return (weights[..., None] * states).sum(2), state  # Eq. (4)

    def channels(self, x: Float[Tensor, "B T D"], state: State | None = None) -> Float[Tensor, "B T C H"]:
        """Return the states h_t^k of all channels, before attention joins them, without dropout."""
        return self._run(x, state, 0.0)[0]

    def introspect(self, x: Float[Tensor, "B T D"], state: State | None = None) -> dict[str, Tensor]:
        """Return what `forward` computes on the way, without dropout.

        Returns:
            "channels": h_t^k, (B, T, C, H); "channel_weights": α_t^k, (B, T, C); "in_degrees": m_t^k, (T, C).
        """
        states = self.channels(x, state)
        return {
            "channels": states,
            "channel_weights": self._channel_weights(states, x),
            "in_degrees": self.in_degrees(x.shape[1], 0 if state is None else state[-1]),
        }

    def in_degrees(self, length: int, read: int = 0) -> Int[Tensor, "T C"]:
        """Return m_t^k, the number of predecessors of the node at step t of channel k.

        Args:
            length: T, number of steps.
            read: number of steps before them.
        """
        device = self.weight_block.device
        t = torch.arange(read + 1, read + length + 1, device=device)[:, None]
        k = torch.arange(1, self.channel_count + 1, device=device)
        begin = k if self.phase == "equation" else 2 - k
        m = (t - begin - 1) % self.predecessors + 1  # Eq. (1)
        return m if self.start == "equation" else m.minimum(t - 1)

    def _run(self, x: Tensor, state: State | None, dropout: float) -> tuple[Tensor, State]:
        """Run all channels together, one step of the cell at a time; return their states and the next state."""
        # the last n - 1 states h of each channel, and for an LSTM the last c
        shape, parts = (x.shape[0], self.channel_count, self.predecessors, self.d_hidden), CELLS[self.cell].parts
        state = (*[x.new_zeros(shape)] * parts, 0) if state is None else state
        check_state(state, *[shape] * parts, None)
        *recent, read = state
        maps = F.dropout(self.weight_block, dropout if self.weight_dropout_on == "all" else 0.0)
        maps = maps.transpose(0, 1).flatten(1)  # (H, (n-1) · H): the W_j side by side
        hidden = F.dropout(self.weight_hh_l0, dropout)
        projected = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)[:, :, None]  # (B, T, 1, gates · H)
        states, cell = [], CELLS[self.cell].step
        for from_input, share in zip(projected.unbind(1), self._shares(x, read).unbind(0), strict=True):
            # Eq. (2): each predecessor's state divided by m. One product with the W_j side by side also adds them up.
            s = F.linear((share * recent[0]).flatten(2), maps)  # (B, C, H)
            memories = [(share * c).sum(2) for c in recent[1:]]  # of an LSTM
            after = cell(from_input, F.linear(s, hidden, self.bias_hh_l0), (s, *memories))  # Eq. (3)
            recent = [torch.cat([new[:, :, None], old[:, :, :-1]], 2) for new, old in zip(after, recent, strict=True)]
            states.append(after[0])
        return torch.stack(states, 1), (*recent, read + x.shape[1])

    def _shares(self, x: Tensor, read: int) -> Float[Tensor, "T C P 1"]:
        """Return 1/m for each of a node's m predecessors, the youngest first, and 0 up to P = n - 1 places."""
        m = self.in_degrees(x.shape[1], read)[..., None]
        j = torch.arange(self.predecessors, device=x.device)
        return ((j < m).to(x.dtype) / m.clamp(min=1))[..., None]

    def _channel_weights(self, states: Tensor, x: Tensor) -> Float[Tensor, "B T C"]:
        # Eq. (6): r tanh(V [h; x])
        if replaced(self.attention_v):  # a wrapper such as LoRA: call the layer, do not read its weight
            mixed = self.attention_v(torch.cat([states, x[:, :, None].expand(*states.shape[:3], -1)], -1))
        else:  # V [h; x] = V_h h + V_x x. The second term is the same in all channels.
            v_h, v_x = self.attention_v.weight.split([self.d_hidden, self.d_model], 1)
            mixed = F.linear(states, v_h) + F.linear(x, v_x)[:, :, None]
        energies = self.attention_r(torch.tanh(mixed)).squeeze(-1)
        # Eq. (5), in float32 at least. The channels are similar, and V and r learn from their small differences.
        return energies.softmax(-1, dtype=torch.promote_types(energies.dtype, torch.float32)).to(x.dtype)

    def extra_repr(self) -> str:
        """Return what `print(model)` shows."""
        return f"d_model={self.d_model}, d_hidden={self.d_hidden}, block={self.predecessors + 1}, cell={self.cell!r}"
