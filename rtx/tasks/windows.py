"""A long text in windows: each token predicted once, from the tokens before it; losses and metrics of tokens."""

import math
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from rtx.nn.validate import check_count, check_positive
from rtx.tasks.task import IGNORED, Batch, Example, Examples, Sum, mean_metric, mean_of, widened

if TYPE_CHECKING:
    from torchmetrics import Metric

TOGETHER = 640_000  # logits whose loss is computed at a time


def windows(tokens: Int[Tensor, " N"], start: int, context: int, scored: int) -> Examples:
    """Window w predicts the tokens w·s … (w+1)·s - 1, each from the one before it, and begins to read c tokens further
    back, or at the text's start.

    So each token is scored exactly once, the text's first ones with less context; the published code of TCN and
    R-Transformer never scores those.

    Args:
        tokens: the text.
        start: the token that is read before the first.
        context: c; 0 where a model carries its state from window to window.
        scored: s.

    Raises:
        ValueError: if `scored` is below 1, or `context` below 0.
    """
    check_positive("scored", scored), check_count("context", context)
    before = torch.cat([tokens.new_tensor([start]), tokens[:-1]])

    def window(index: int) -> Example:
        first = index * scored
        begin, end = max(0, first - context), min(first + scored, len(tokens))
        target = tokens[begin:end].clone()
        target[: first - begin] = IGNORED
        return Example(before[begin:end], target)

    return Examples(math.ceil(len(tokens) / scored), window)


def token_nll(predictions: Tensor, batch: Batch) -> Sum:
    """-log p of each scored token in nats, summed; p is the softmax of (B, T, V) logits, or of (N, V) scored ones."""
    scored = batch.targets != IGNORED
    if predictions.ndim == 2:
        logits, targets = predictions, batch.targets[scored]
    else:
        if not (scored.is_cpu and scored.all()):  # a GPU is not asked: the CPU would have to wait
            predictions = torch.where(scored[..., None], predictions, 0)
        logits, targets = predictions.flatten(0, 1), batch.targets.flatten()
    return Sum(summed_cross_entropy(widened(logits), targets), scored.sum())


def summed_cross_entropy(logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
    """The sum of -log softmax(logits)[target] over the rows that count, in nats.

    A few rows at a time: with 10,000 words torch's intermediate arrays are large, and small parts stay in the cache.
    """
    rows = max(1, TOGETHER // logits.shape[1])
    pairs = zip(logits.split(rows), targets.split(rows), strict=True)
    parts = [F.cross_entropy(*pair, ignore_index=IGNORED, reduction="sum") for pair in pairs]
    return torch.stack(parts).sum()


tokens_measured = mean_of(token_nll)
"""What `perplexity` and `bits` take, of the same logits."""


def perplexity() -> "Metric":
    """exp of the mean -log p of the scored tokens.

    torchmetrics' own takes the logarithm of a softmax, infinite where a token costs more than 103 nats.
    """
    from torchmetrics.metric import CompositionalMetric

    return CompositionalMetric(_exp, mean_metric(), None)


def bits() -> "Metric":
    """The perplexity's binary logarithm: bits per token."""
    from torchmetrics.metric import CompositionalMetric

    return CompositionalMetric(torch.div, mean_metric(), math.log(2))


def _exp(nats: Tensor) -> Tensor:
    """In float64, which holds e to 709 nats, and on the CPU, as not every device has it."""
    return nats.cpu().double().exp()


def unigram_nll(train: Int[Tensor, " N"], test: Int[Tensor, " M"], vocabulary: int) -> float:
    """The mean -log p in nats of `test` by each token's frequency in `train`, one added to every count."""
    counts = torch.bincount(train, minlength=vocabulary).double() + 1
    return float((counts.sum().log() - counts.log())[test].mean())
