"""Cross-entropy over many classes, without a second array as large as the logits, but for their gradient.

torch's keeps the logarithms of all probabilities, and on the way back fills a third array with zeros.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.kernels.derivatives import gradients_again, only_by_torch
from rtx.nn.kernels.dispatch import Kernel, Operation
from rtx.nn.kernels.native import cross_entropy as native
from rtx.nn.kernels.obstacles import no_hand_written_gradient, no_native_code

TOGETHER = 2**18  # logits, of whole rows, that stay in a core's cache between two passes
FEW = 2**16  # logits that torch's own are as fast for


class Passes(NamedTuple):
    """What goes over all logits, there and back."""

    log_sums: Callable[[Tensor], Tensor]
    softmax_shares: Callable[[Tensor, Tensor, Tensor], Tensor]


def log_sums(logits: Float[Tensor, "N V"]) -> Float[Tensor, "N 1"]:
    """log Σ exp of each row, a few rows at a time."""
    return torch.cat([part.logsumexp(1, keepdim=True) for part in logits.split(_rows(logits))])


def softmax_shares(
    logits: Float[Tensor, "N V"], log_sum: Float[Tensor, "N 1"], share: Float[Tensor, "N 1"]
) -> Float[Tensor, "N V"]:
    """Each row's softmax, times its share, a few rows at a time."""
    found = torch.empty_like(logits)
    parts = (array.split(_rows(logits)) for array in (found, logits, log_sum, share))
    for to, part, part_sum, part_share in zip(*parts, strict=True):
        torch.sub(part, part_sum, out=to).exp_().mul_(part_share)
    return found


def _rows(logits: Tensor) -> int:
    return max(1, TOGETHER // max(1, logits.shape[1]))


def fused_cross_entropy(logits: Float[Tensor, "N V"], targets: Int64[Tensor, " N"], ignored: int) -> Float[Tensor, ""]:
    """The sum over rows of -log softmax(logits)[target], without the rows whose target is `ignored`."""
    return _apply(logits, targets, ignored, Passes(log_sums, softmax_shares))


def native_cross_entropy(logits: Float[Tensor, "N V"], targets: Int64[Tensor, " N"], ignored: int) -> Float[Tensor, ""]:
    """The same in C++, a row at a time."""
    return _apply(logits, targets, ignored, Passes(native.log_sums, native.softmax_shares))


def torch_cross_entropy(logits: Float[Tensor, "N V"], targets: Int64[Tensor, " N"], ignored: int) -> Float[Tensor, ""]:
    """The same by torch's function."""
    return F.cross_entropy(logits, targets, ignore_index=ignored, reduction="sum")


def _apply(logits: Tensor, targets: Tensor, ignored: int, passes: Passes) -> Tensor:
    total: Tensor = _CrossEntropy.apply(logits, targets, ignored, passes)
    return total


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, ignored: int, passes: Passes) -> Tensor:
        counted = targets != ignored
        column = targets.where(counted, 0)[:, None]
        log_sum = passes.log_sums(logits)
        ctx.ignored, ctx.passes = ignored, passes
        ctx.save_for_backward(logits, targets, counted[:, None], column, log_sum)
        return (log_sum - logits.gather(1, column)).squeeze(1)[counted].sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        logits, targets, counted, column, log_sum = ctx.saved_tensors
        if only_by_torch(gradients):
            return *gradients_again(torch_cross_entropy, (logits, targets, ctx.ignored), gradients), None
        share = counted * gradients[0]
        return ctx.passes.softmax_shares(logits, log_sum, share).scatter_add_(1, column, -share), None, None, None


def _cannot(logits: Tensor, targets: Tensor, ignored: int) -> str | None:
    if logits.dtype.itemsize < 4:
        return f"it sums in the precision of the logits, and theirs is {logits.dtype}"
    return no_hand_written_gradient(logits)


def _cannot_natively(logits: Tensor, targets: Tensor, ignored: int) -> str | None:
    return no_native_code(logits)


def _few(logits: Tensor, targets: Tensor, ignored: int) -> str | None:
    return f"there are only {logits.numel()} logits" if logits.numel() < FEW else None


cross_entropy = Operation(
    "cross_entropy",
    {
        "native": Kernel(native_cross_entropy, _cannot_natively, _few),
        "fused": Kernel(fused_cross_entropy, _cannot, _few),
        "torch": Kernel(torch_cross_entropy),
    },
)
"""`cross_entropy(logits, targets, ignored)`: -log softmax(logits)[target], summed over the rows that count."""
