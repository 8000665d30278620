"""MC-RNN's channels, all steps of a piece, as a plain loop over the steps.

Xu et al. (2019), Eq. 2-3, with every switch of `rtx.nn.multi_channel.MultiChannelRNN`.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.recurrent import CELLS

CANDIDATE = 2  # torch's third gate, n of a GRU and g of an LSTM


class Wiring(NamedTuple):
    """m_t^k, how many predecessors a node is connected to, (T, C), and the switches of `MultiChannelRNN`."""

    degrees: tuple[tuple[int, ...], ...]
    cell: str
    cell_state: str
    mapping: str


def plain_channels(
    x: Tensor,
    rings: tuple[Tensor, ...],
    w_input: Tensor,
    input_bias: Tensor,
    u: Tensor,
    state_bias: Tensor,
    w_block: Tensor,
    wiring: Wiring,
) -> tuple[Tensor, ...]:
    """All channels together, a step of the cell at a time; arguments and result as those of `channels`."""
    step, w = CELLS[wiring.cell].step, w_block.transpose(0, 1).flatten(1)  # the W_j side by side
    projected = F.linear(x, w_input, input_bias)[:, :, None]  # (B, T, 1, gates · H)
    states = []
    for from_input, share in zip(projected.unbind(1), _shares(wiring, rings[0]).unbind(0), strict=True):
        # Eq. (2): the mean over the predecessors, then one product for all W_j
        s = F.linear((share * rings[0]).flatten(2), w)  # (B, C, H), or gates · H
        before = (_whole(s, wiring), *(_mixed(ring, share, w, wiring) for ring in rings[1:]))
        after = step(from_input, _recurrent(s, u, state_bias, wiring), before)  # Eq. (3)
        rings = tuple(torch.cat([new[:, :, None], ring[:, :, :-1]], 2) for new, ring in zip(after, rings, strict=True))
        states.append(after[0])
    return torch.stack(states, 1), *rings


def _shares(wiring: Wiring, like: Tensor) -> Float[Tensor, "T C P 1"]:
    """1/m for each of the m predecessors that a node is connected to, the youngest first, and 0 beyond.

    Made on the device, of operations alone: numbers copied to it would be none that a CUDA graph can record.
    """
    P = like.shape[2]
    m = torch.arange(P + 1, dtype=like.dtype, device=like.device)[:, None]
    by_degree = (like.new_ones(P + 1, P).tril(-1) / m.clamp(min=1)).unbind()  # for each m
    rows = [by_degree[degree] for row in wiring.degrees for degree in row]
    return torch.stack(rows).view(len(wiring.degrees), -1, P, 1)


def _mixed(c: Tensor, share: Tensor, w: Tensor, wiring: Wiring) -> Tensor:
    """The c that the forget gate meets, (B, C, H)."""
    if wiring.cell_state == "previous":
        return c[:, :, 0]
    if wiring.cell_state == "mapped":
        return _whole(F.linear((share * c).flatten(2), w), wiring)
    return (share * c).sum(2)


def _whole(s: Tensor, wiring: Wiring) -> Tensor:
    """s where it is no gate's input: the candidate's, if each gate has its own."""
    if wiring.mapping == "shared" or wiring.cell == "rnn":
        return s
    return s.chunk(CELLS[wiring.cell].gates, -1)[CANDIDATE]


def _recurrent(s: Tensor, u: Tensor, bias: Tensor, wiring: Wiring) -> Tensor:
    """What the state contributes to each gate, (B, C, gates · H)."""
    if wiring.mapping == "shared":
        return F.linear(s, u, bias)
    H = u.shape[1]
    return torch.cat([F.linear(*pair) for pair in zip(s.split(H, -1), u.split(H), strict=True)], -1) + bias
