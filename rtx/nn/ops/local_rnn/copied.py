"""LocalRNN with every window copied, and torch's own recurrent network on all copies together, as the authors have it.

On a CPU this is the slow way, because each position is projected once for each of its M windows. On a GPU the products
are cheap and the launches are dear: the plain version launches several kernels for each of the M steps and each gate,
and cuDNN a few for all of them.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.ops.gradients import autocast_inputs, needs_torch, torch_gradients, without_autocast
from rtx.nn.ops.local_rnn.torch import torch_local_rnn
from rtx.nn.precision import float32_cudnn


def on_copies(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str) -> Tensor:
    """Return the last hidden state of every window, with a gradient by torch or cuDNN."""
    B, T, D = x.shape
    # Eq. (2): M - 1 zero vectors, then the windows, (B, T, D, M), as the M steps of B T sequences
    steps = F.pad(x, (0, 0, window - 1, 0)).unfold(1, window, 1).permute(3, 0, 1, 2).reshape(window, B * T, D)
    zero = x.new_zeros(1, B * T, D)
    options: Any = ([w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, torch.is_grad_enabled(), False, False)
    with float32_cudnn(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*weights are not part of single contiguous chunk")
        # Eq. (3)
        if cell == "lstm":
            last = torch.lstm(steps, (zero, zero), *options)[1]
        else:
            last = (torch.gru if cell == "gru" else torch.rnn_tanh)(steps, zero, *options)[1]
    return last.view(B, T, D)


def copied_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """Return the last hidden state of every window."""
    out: Tensor = _LocalRNN.apply(torch.is_grad_enabled(), *autocast_inputs(x, w_ih, w_hh, b_ih, b_hh), window, cell)
    return out


class _LocalRNN(torch.autograd.Function):
    """Adds what cuDNN's backward pass lacks: second derivatives, and float32 that is not rounded to tf32."""

    @staticmethod
    def forward(ctx: Any, learning: bool, *given: Any) -> Tensor:
        *tensors, ctx.window, ctx.cell = given
        ctx.save_for_backward(*tensors)
        ctx.run = _run(ctx.needs_input_grad[1:] if learning else [False] * len(given), *given)
        out: Tensor = ctx.run[0].detach()
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        given = (*ctx.saved_tensors, ctx.window, ctx.cell)
        if needs_torch(gradients):
            return None, *torch_gradients(torch_local_rnn, given, gradients)
        out, inputs = ctx.run or _run(ctx.needs_input_grad[1:], *given)  # again, if the graph is used again
        ctx.run = None  # its memory is free as soon as the gradients are there
        with float32_cudnn():
            found = iter(torch.autograd.grad(out, [x for x in inputs if x.requires_grad], gradients[0]))
        return None, *(next(found) if x.requires_grad else None for x in inputs), None, None


@without_autocast
def _run(needed: Sequence[bool], *given: Any) -> tuple[Tensor, list[Tensor]]:
    """Return the output, and the inputs from which its gradient is taken."""
    inputs = [x.detach().requires_grad_(need) for x, need in zip(given[:-2], needed, strict=False)]
    with torch.set_grad_enabled(any(needed)):
        return on_copies(*inputs, *given[-2:]), inputs
