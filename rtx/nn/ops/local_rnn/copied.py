"""LocalRNN with every window copied, and torch's own recurrent network on all copies together, as the authors have it.

On a CPU this is the slow way: it projects each position once for each of its M windows. On a GPU it launches few
kernels, because cuDNN computes all steps and gates together, and the plain version launches several for each step.
Nobody has yet measured whether it is faster there, so it is used only if it is asked for.
"""

import warnings
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.ops.gradients import autocast_inputs, without_autocast


def copied_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """Return the last hidden state of every window. On a GPU it has no second derivatives, because cuDNN has none."""
    x, w_ih, w_hh, b_ih, b_hh = autocast_inputs(x, w_ih, w_hh, b_ih, b_hh)
    return _on_copies(x, w_ih, w_hh, b_ih, b_hh, window, cell)


@without_autocast  # under bfloat16 autocast, torch would run cuDNN in float16
def _on_copies(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str) -> Tensor:
    B, T, D = x.shape
    # Eq. (2): M - 1 zero vectors, then the windows, (B, T, D, M), as the M steps of B T sequences
    steps = F.pad(x, (0, 0, window - 1, 0)).unfold(1, window, 1).permute(3, 0, 1, 2).reshape(window, B * T, D)
    zero = x.new_zeros(1, B * T, D)
    options: Any = ([w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, torch.is_grad_enabled(), False, False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*weights are not part of single contiguous chunk")
        # Eq. (3)
        if cell == "lstm":
            last = torch.lstm(steps, (zero, zero), *options)[1]
        else:
            last = (torch.gru if cell == "gru" else torch.rnn_tanh)(steps, zero, *options)[1]
    return last.view(B, T, D)
