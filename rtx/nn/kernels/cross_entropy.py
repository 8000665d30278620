"""Cross-entropy over many classes, a few rows at a time: what lies between its passes stays in a core's cache.

torch's keeps a second array as large as the logits, and on the way back fills a third one with zeros.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.kernels.derivatives import gradients_again
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.obstacles import no_hand_written_gradient

TOGETHER = 2**18  # logits, of whole rows
FEW = 2**16  # logits that torch's own are as fast for


def fused_cross_entropy(logits: Float[Tensor, "N V"], targets: Int64[Tensor, "N"], ignored: int) -> Float[Tensor, ""]:
    """The sum over rows of -log softmax(logits)[target], without the rows whose target is `ignored`."""
    total: Tensor = _FusedCrossEntropy.apply(logits, targets, ignored)
    return total


def torch_cross_entropy(logits: Float[Tensor, "N V"], targets: Int64[Tensor, "N"], ignored: int) -> Float[Tensor, ""]:
    """The same by torch's function."""
    return F.cross_entropy(logits, targets, ignore_index=ignored, reduction="sum")


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, ignored: int) -> Tensor:
        counted = targets != ignored
        column = targets.where(counted, 0)[:, None]
        rows = max(1, TOGETHER // max(1, logits.shape[1]))
        log_sum = torch.cat([part.logsumexp(1, keepdim=True) for part in logits.split(rows)])
        ctx.ignored, ctx.rows = ignored, rows
        ctx.save_for_backward(logits, targets, counted[:, None], column, log_sum)
        return (log_sum - logits.gather(1, column)).squeeze(1)[counted].sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        logits, targets, counted, column, log_sum = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to have a gradient
            return gradients_again(torch_cross_entropy, (logits, targets, ctx.ignored), gradients)
        weight = counted * gradients[0]
        d_logits = torch.empty_like(logits)
        arrays = (d_logits, logits, log_sum, weight)
        for d_part, part, part_sum, share in zip(*(array.split(ctx.rows) for array in arrays), strict=True):
            torch.sub(part, part_sum, out=d_part).exp_().mul_(share)
        return d_logits.scatter_add_(1, column, -weight), None, None


def _cannot(logits: Tensor, targets: Tensor, ignored: int) -> str | None:
    return no_hand_written_gradient(logits)


def _few(logits: Tensor, targets: Tensor, ignored: int) -> str | None:
    return f"there are only {logits.numel()} logits" if logits.numel() < FEW else None


cross_entropy = Operation(
    "cross_entropy",
    {"fused": Kernel(fused_cross_entropy, _cannot, _few), "torch": Kernel(torch_cross_entropy)},
)
"""`cross_entropy(logits, targets, ignored)`: -log softmax(logits)[target], summed over the rows that count."""
