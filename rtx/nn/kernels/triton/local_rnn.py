"""LocalRNN by Triton's kernels: torch's products around them, and the memory that they work in."""

from typing import Any

import torch
import triton
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.local_rnn import torch_local_rnn
from rtx.nn.kernels.precision import autocast_inputs, without_autocast
from rtx.nn.kernels.triton.launch import on, precision
from rtx.nn.kernels.triton.local_rnn_backward import backward_kernel, collect_kernel
from rtx.nn.kernels.triton.local_rnn_forward import forward_kernel
from rtx.nn.kernels.triton.plan import GATES, KEPT, plan

SUMMED = {"rnn": 1, "gru": 2, "lstm": 4}  # the first gates, into which input and state go by their sum
SCRATCH = 2**28  # numbers that the backward pass may keep at once: of longer batches it takes a few sequences at a time


def triton_local_rnn(
    x: Float[Tensor, "B T D"], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> Float[Tensor, "B T D"]:
    """The last hidden state of every window. With float32, products are as exact as torch's own setting asks for."""
    x, *weights = autocast_inputs(x, w_ih, w_hh, b_ih, b_hh)
    together = max(1, SCRATCH // (x.shape[1] * x.shape[2] * window * (KEPT[cell] + 1)))
    parts: list[Tensor] = [_LocalRNN.apply(part, *weights, window, cell) for part in x.split(together)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class _LocalRNN(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
    ) -> Tensor:
        ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh)
        ctx.window, ctx.cell = window, cell
        _, projected = _projected(x, w_ih, b_ih, b_hh, window, cell)
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        _run_forward(projected, w_hh, b_hh, out, (), window, cell)
        return out

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, w_ih, w_hh, b_ih, b_hh), M, cell = ctx.saved_tensors, ctx.window, ctx.cell
        if only_by_torch(gradients):
            return gradients_again(torch_local_rnn, (x, w_ih, w_hh, b_ih, b_hh, M, cell), gradients)
        (B, T, D), width = x.shape, len(w_hh)
        padded, projected = _projected(x, w_ih, b_ih, b_hh, M, cell)
        kept, states = x.new_empty(M, B * T, KEPT[cell] * D), x.new_empty(M - 1, B * T, D)
        memories = torch.empty_like(states, dtype=torch.float32) if cell == "lstm" else states
        _run_forward(projected, w_hh, b_hh, x, (kept, states, memories), M, cell)
        _run_backward(w_hh, gradients[0].contiguous(), kept, states, memories, cell)
        d_projected = torch.empty_like(projected)
        _run_collect(kept, d_projected, (B, T, M), D, cell)
        # the gates' gradients are there: torch's products form the others from them
        d_flat, d_gates = d_projected.flatten(0, 1), kept[..., :width]
        d_x = (d_flat @ w_ih).view_as(padded)[:, M - 1 :]
        d_w_ih, d_w_hh = d_flat.T @ padded.flatten(0, 1), d_gates[1:].flatten(0, 1).T @ states.flatten(0, 1)
        d_b_ih = d_flat.sum(0)
        summed = SUMMED[cell] * D
        d_b_hh = torch.cat([d_b_ih[:summed], d_gates[..., summed:].sum((0, 1))])
        return d_x, d_w_ih, d_w_hh, d_b_ih, d_b_hh, None, None


def _projected(
    x: Tensor, w_ih: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> tuple[Float[Tensor, "B P D"], Float[Tensor, "B P G"]]:
    """The sequences with window - 1 zero vectors before them, and W x + b, with both biases where they only add up."""
    summed = SUMMED[cell] * x.shape[2]
    padded = F.pad(x, (0, 0, window - 1, 0))
    return padded, F.linear(padded, w_ih, b_ih + F.pad(b_hh[:summed], (0, len(b_hh) - summed)))


def _run_forward(
    projected: Tensor, w_hh: Tensor, b_hh: Tensor, out: Tensor, kept: tuple[Tensor, ...], window: int, cell: str
) -> None:
    """Fill `out`; or, if there are places for it, what is to be kept."""
    B, T, D = out.shape
    options = _options(D, cell, w_hh) | ({} if kept else {"KEPT": 0})
    places = kept or (out, out, out)
    with on(out):
        forward_kernel[(triton.cdiv(B * T, options["ROWS"]),)](
            projected, w_hh.contiguous(), b_hh[-D:].contiguous(), out, *places, B * T, T, window, CELL=cell, **options
        )


def _run_backward(w_hh: Tensor, d_out: Tensor, kept: Tensor, states: Tensor, memories: Tensor, cell: str) -> None:
    """Put the gates' gradients where they were kept."""
    (M, N, _), D = kept.shape, d_out.shape[2]
    options = _options(D, cell, w_hh)
    with on(d_out):
        backward_kernel[(triton.cdiv(N, options["ROWS"]),)](
            w_hh.contiguous(), d_out, kept, states, memories, N, M, CELL=cell, **options
        )


def _run_collect(d_kept: Tensor, d_projected: Tensor, sizes: tuple[int, int, int], D: int, cell: str) -> None:
    """Add up, for each position, what all of its windows say."""
    places, width = d_projected.flatten(0, 1).shape
    with on(d_kept):
        collect_kernel[(triton.cdiv(places, 32), triton.cdiv(width, 64))](
            d_kept, d_projected, *sizes, width, d_kept.shape[2], SUMMED[cell] * D, ROWS=32, COLUMNS=64
        )


def _options(D: int, cell: str, w_hh: Tensor) -> dict[str, Any]:
    """What the kernels are compiled for."""
    sizes, rows, warps = plan(D)
    numbers = {"D": D, "GATES": GATES[cell], "KEPT": KEPT[cell], "SIZES": sizes, "ROWS": rows}
    return numbers | {"PRECISION": precision(), "num_warps": warps, "num_stages": 1}
