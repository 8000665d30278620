"""LocalRNN in plain torch: all windows take their i-th step together."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.recurrent import CELLS, CellState


def window_states(
    x: Float[Tensor, "B T D"],
    w_ih: Float[Tensor, "G D"],
    w_hh: Float[Tensor, "G D"],
    b_ih: Float[Tensor, " G"],
    b_hh: Float[Tensor, " G"],
    window: int,
    cell: str,
) -> Iterator[CellState]:
    """Yield the state of all windows, (B, T, D), after their first, second, … and last position.

    Each position is in M windows, but its input projection is the same in all of them. So it is computed once, and
    step i of all windows reads the projections shifted by i. The windows are never copied.
    """
    B, T, _ = x.shape
    step = CELLS[cell].step
    projected = F.linear(x, w_ih, b_ih)
    b_hh = b_hh.to(projected.dtype)  # under autocast
    before = b_ih.expand(B, window - 1, -1).to(projected.dtype)  # the projection of a zero vector is the bias
    projected = torch.cat([before, projected], 1)  # (B, M-1+T, G)
    # Eq. (2)-(3). The first step starts from a zero state, which needs no recurrent product.
    state = step(projected[:, :T], b_hh, None)
    yield state
    for i in range(1, window):
        state = step(projected[:, i : i + T], F.linear(state[0], w_hh, b_hh), state)
        yield state


def torch_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """Return the last hidden state of every window."""
    for state in window_states(x, w_ih, w_hh, b_ih, b_hh, window, cell):
        last = state[0]  # without autograd, earlier states are freed
    return last
