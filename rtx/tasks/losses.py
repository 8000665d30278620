"""Losses and metrics that several tasks share: of classes and of tokens."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from rtx.tasks.task import IGNORED, Batch, Example, Split, Sum, Task, mean_metric, mean_of, widened

if TYPE_CHECKING:
    from torchmetrics import Metric

Splits = Callable[[Split], Sequence[Example]]
Checksum = Callable[[], str | None]

TOGETHER = 640_000  # logits whose loss is computed at a time


def class_cross_entropy(predictions: Tensor, batch: Batch) -> Sum:
    """Cross-entropy in nats of (B, K) logits, summed over sequences."""
    total = cross_entropy(widened(predictions), batch.targets, reduction="sum")
    return Sum(total, batch.lengths.new_tensor(len(batch.lengths)))


def scored_cross_entropy(predictions: Tensor, targets: Tensor, scored: Tensor) -> Sum:
    """Cross-entropy in nats of (B, T, K) logits, summed over the scored positions (B, T), whose number is the count."""
    if not scored.is_cpu:  # to leave out rows, the CPU would have to wait until the GPU has counted the others
        predictions, targets = torch.where(scored[..., None], predictions, 0), targets.where(scored, IGNORED)
    elif not scored.all():
        predictions, targets = predictions[scored], targets[scored]
    return Sum(summed_cross_entropy(widened(predictions).flatten(0, -2), targets.flatten()), scored.sum())


def percent_correct(classes: int) -> "Metric":
    """Return torchmetrics' accuracy, in percent."""
    from torchmetrics.classification import MulticlassAccuracy

    return 100 * MulticlassAccuracy(num_classes=classes, average="micro")


def percent_commonest(labels: Iterable[int]) -> float:
    """Return the share of the commonest label, in percent: the best accuracy of always the same answer."""
    counts = Counter(labels)
    return 100 * max(counts.values()) / counts.total()


def classification(name: str, inputs: int, classes: int, examples: Splits, sha256: Checksum = lambda: None) -> Task:
    """Return a task with one class per sequence."""
    return Task(
        name=name,
        inputs=inputs,
        outputs=classes,
        per="sequence",
        examples=examples,
        loss=class_cross_entropy,
        measured=lambda predictions, batch: (predictions, batch.targets),
        scorer=partial(percent_correct, classes),
        metric="accuracy (%)",
        best="max",
        sha256=sha256,
        baseline=lambda: percent_commonest(int(example.target) for example in examples("test")[:]),
    )


def token_nll(predictions: Tensor, batch: Batch) -> Sum:
    """-log p of each scored token in nats, summed. p is the softmax of (B, T, V) logits, or of (N, V) scored ones."""
    scored = batch.targets != IGNORED
    if predictions.ndim == 2:
        return Sum(summed_cross_entropy(widened(predictions), batch.targets[scored]), scored.sum())
    return scored_cross_entropy(predictions, batch.targets, scored)


def summed_cross_entropy(logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
    """The sum of -log softmax(logits)[target] over the rows that are not `IGNORED`, in nats.

    A few rows at a time: with 10,000 words torch's intermediate arrays are large, and small parts stay in the cache.
    """
    rows = max(1, TOGETHER // logits.shape[1])
    pairs = zip(logits.split(rows), targets.split(rows), strict=True)
    return torch.stack([cross_entropy(*pair, ignore_index=IGNORED, reduction="sum") for pair in pairs]).sum()


tokens_measured = mean_of(token_nll)  # what `perplexity` and `bits` take


def perplexity() -> "Metric":
    """Return the metric exp(mean -log p) of the scored tokens.

    torchmetrics' own takes the logarithm of a softmax, which is infinite if a token costs more than 103 nats.
    """
    from torchmetrics.metric import CompositionalMetric

    # in float64, which holds e to the power of 709, and on the CPU, because not every device has float64
    return CompositionalMetric(lambda nats: nats.cpu().double().exp(), mean_metric(), None)


def bits() -> "Metric":
    """Return the metric bits per token: the binary logarithm of the perplexity."""
    from torchmetrics.metric import CompositionalMetric

    return CompositionalMetric(torch.div, mean_metric(), math.log(2))


def unigram_nll(train: Int[Tensor, " N"], test: Int[Tensor, " M"], vocabulary: int) -> float:
    """Return the mean -log p in nats of `test` by each token's frequency in `train`, with one added to every count."""
    counts = torch.bincount(train, minlength=vocabulary).double() + 1
    return float((counts.sum().log() - counts.log())[test].mean())


def bigram_nll(train: Int[Tensor, " N"], test: Int[Tensor, " M"], start: int, vocabulary: int) -> Float[Tensor, " M"]:
    """Return -log p in nats of each token of `test`, given the token before it, by the pairs that `train` has.

    p(b|a) = (c(ab) + T(a) p(b)) / (c(a) + T(a)); c counts, T(a) is the number of different tokens after a, and p(b) is
    the frequency of `unigram_nll`. Witten & Bell (1991), The Zero-Frequency Problem, method C. `start` is before both.
    """
    before, first = (torch.cat([tokens.new_tensor([start]), tokens[:-1]]) for tokens in (train, test))
    pairs, counts = torch.unique(before * vocabulary + train, return_counts=True)
    kinds = torch.bincount(pairs // vocabulary, minlength=vocabulary).double()
    total = torch.bincount(pairs // vocabulary, counts, vocabulary).double()
    frequency = (torch.bincount(train, minlength=vocabulary).double() + 1) / (len(train) + vocabulary)
    wanted = first * vocabulary + test
    at = torch.searchsorted(pairs, wanted).clamp(max=len(pairs) - 1)
    seen = torch.where(pairs[at] == wanted, counts[at], 0)
    rest = kinds[first].clamp(min=1)  # nothing came after a token that is new here
    return -((seen + rest * frequency[test]) / (total[first] + rest)).log()
