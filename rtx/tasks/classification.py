"""What tasks with one class per sequence share: their loss, their metric, and the score of a constant answer."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import cross_entropy

from rtx.tasks.task import Batch, Sum, sequence_count, widened

if TYPE_CHECKING:
    from torchmetrics import Metric


def summed_cross_entropy(predictions: Tensor, batch: Batch) -> Sum:
    """Cross-entropy in nats of (B, K) logits, summed over sequences."""
    return Sum(cross_entropy(widened(predictions), batch.targets, reduction="sum"), sequence_count(batch))


def percent_correct(classes: int = 10) -> "Metric":
    """torchmetrics' accuracy, in percent: how many have their class as the largest of their logits."""
    from torchmetrics.classification import MulticlassAccuracy

    return 100 * MulticlassAccuracy(num_classes=classes, average="micro")


def percent_commonest(labels: Iterable[int]) -> float:
    """The best accuracy, in percent, of one answer to everything: the share of the commonest label."""
    counts = Counter(labels)
    return 100 * max(counts.values()) / counts.total()
