"""What tasks with one class per sequence or step share: losses, their metric, and the score of a constant answer."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rtx.tasks.task import IGNORED, Batch, Sum, sequence_count, widened

if TYPE_CHECKING:
    from torchmetrics import Metric


def summed_cross_entropy(predictions: Tensor, batch: Batch) -> Sum:
    """Cross-entropy in nats of (B, K) logits, summed over sequences."""
    return Sum(cross_entropy(widened(predictions), batch.targets, reduction="sum"), sequence_count(batch))


def scored_cross_entropy(predictions: Tensor, targets: Tensor, scored: Tensor) -> Tensor:
    """Cross-entropy in nats of (B, T, K) logits, summed over the steps that are scored, (B, T)."""
    if scored.is_cpu:
        return cross_entropy(widened(predictions[scored]), targets[scored], reduction="sum")
    # rows cannot be left out without asking a GPU how many remain, and the CPU would have to wait for the answer
    logits, targets = torch.where(scored[..., None], predictions, 0), targets.where(scored, IGNORED)
    return cross_entropy(widened(logits).flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")


def percent_correct(classes: int = 10) -> "Metric":
    """torchmetrics' accuracy, in percent: how many have their class as the largest of their logits."""
    from torchmetrics.classification import MulticlassAccuracy

    return 100 * MulticlassAccuracy(num_classes=classes, average="micro")


def percent_commonest(labels: Iterable[int]) -> float:
    """The best accuracy, in percent, of one answer to everything: the share of the commonest label."""
    counts = Counter(labels)
    return 100 * max(counts.values()) / counts.total()
