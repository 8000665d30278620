"""What an experiment is: its examples, its loss, its score. One `Task` object holds all three."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from rtx.nn.padding import real_positions
from rtx.nn.validate import check_choice

if TYPE_CHECKING:
    from torchmetrics import Metric

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


Per = Literal["step", "sequence", "token", "pair"]
"""What a model predicts: something at each step of a sequence of vectors, or one thing for it; the next token of a text
at each of its tokens; or the next token of a target sentence, given a source sentence."""

IGNORED = -100
"""The target of a token that is not scored, as torch's cross-entropy has it: context, padding."""

Scores = dict[str, float | str]
"""Scores by name, and by what they were measured."""


class Example(NamedTuple):
    """One sequence and what is to be predicted of it.

    Args:
        inputs: (T, F) numbers; for "token" and "pair" (T,) whole numbers, a text or a source sentence.
        target: (T, K) for "step", (K,) or () for "sequence"; for "token" (T,), the tokens after each, `IGNORED`
            where they are not scored; for "pair" the target sentence from its begin to its end token.
    """

    inputs: Tensor
    target: Tensor


class Batch(NamedTuple):
    """Sequences padded at their end to the longest: inputs with 0, targets with 0 or, if tokens, `IGNORED`.

    `lengths` (B,) are those of the inputs.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class Sum:
    """A sum over what is scored (frames, sequences) and how many there were: sums of batches add up."""

    total: Tensor
    count: Tensor


@runtime_checkable
class Text(Protocol):
    """Reads and writes a kind of tokens."""

    @property
    def size(self) -> int:
        """How many different tokens there are."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""

    def to_json(self) -> dict[str, Any]:
        """Itself in plain values, its `kind` among them, for a checkpoint."""


def mean_metric() -> "Metric":
    """torchmetrics' mean of values, each with its weight; NaN as soon as one of them is."""
    from torchmetrics import MeanMetric  # takes a second to import

    return MeanMetric(nan_strategy=math.nan)  # NaN stands in for NaN: "warn" leaves it out, "disable" all weights


def mean_of(total: "Callable[[Tensor, Batch], Sum]") -> "Callable[[Tensor, Batch], tuple[Tensor, ...]]":
    """What `mean_metric` takes, from a sum over a batch: the mean, and how many it is of."""

    def measured(predictions: Tensor, batch: Batch) -> tuple[Tensor, ...]:
        found = total(predictions, batch)
        return found.total / found.count, found.count

    return measured


@dataclass(frozen=True)
class Task:
    """An experiment of the papers.

    Args:
        name: as on the command line.
        inputs: F, numbers per step; for "token" and "pair" the tokens there are in what is read.
        outputs: K, numbers per prediction; the tokens there are in what is predicted.
        per: what is predicted; see `Per`.
        examples: split → its examples; reads or makes the data when called.
        loss: (predictions, batch) → summed loss; padding is left out.
        measured: (predictions, batch) → what the scorer's `update` takes; padding is left out.
        metric: the metric's name with its unit.
        best: whether the lowest ("min") or the highest ("max") score is best.
        scorer: makes the metric, torchmetrics' own; the mean of values and weights if not given.
        sha256: checksum of the data; None where the task makes its own.
        baseline: the score on the test split of an answer without a model: the commonest class, the frequency of each
            token, a copy of the source.
        examine: (model, split, limit) → named scores of what the model writes for the first `limit` examples (None:
            for all), the first of them the one that `test` means; None where that is `metric`. What validation
            chooses by stays `metric`.
        texts: how its tokens are read and written: of a text, or of source and target.
        sparse: for "token", `predict` decodes only what is scored: (N, V) logits, in the order of rows and columns.
        frame_seconds: how long a step lasts when music is played; None for other tasks.
    """

    name: str
    inputs: int
    outputs: int
    per: Per
    examples: Callable[[Split], Sequence[Example]]
    loss: Callable[[Tensor, Batch], Sum]
    measured: Callable[[Tensor, Batch], tuple[Tensor, ...]]
    metric: str
    best: Literal["min", "max"]
    scorer: Callable[[], "Metric"] = mean_metric
    sha256: Callable[[], str | None] = lambda: None
    baseline: Callable[[], float] | None = None
    examine: "Callable[[nn.Module, Split, int | None], Scores] | None" = None
    texts: "tuple[Text, ...]" = ()
    sparse: bool = False
    frame_seconds: float | None = None

    @property
    def test_best(self) -> Literal["min", "max"]:
        """Whether the lowest or the highest test score is best: of written sentences it is BLEU or ROUGE."""
        return "max" if self.per == "pair" else self.best

    def predict(self, model: nn.Module, batch: Batch) -> Tensor:
        """What the model says of a batch: a target sentence is predicted from its tokens so far."""
        if self.per == "token":
            return model(batch.inputs, batch.targets != IGNORED) if self.sparse else model(batch.inputs)
        if self.per == "pair":
            return model(batch.inputs, batch.targets[:, :-1].clamp(min=0), batch.lengths)
        return model(batch.inputs, batch.lengths)

    def score(self, predictions: Tensor, batch: Batch) -> float:
        """The metric of one batch."""
        metric = self.scorer()
        metric.update(*self.measured(predictions, batch))
        return float(metric.compute())

    def split(self, name: str) -> Sequence[Example]:
        """The examples of "train", "validation" or "test".

        Raises:
            ValueError: if there is no such split.
        """
        check_choice("split", name, SPLITS)
        return self.examples(name)  # type: ignore[arg-type]


def where_it_is(model: nn.Module, batch: Batch) -> Batch:
    """The batch on the device of the model's parameters."""
    device = next(model.parameters()).device
    return Batch(*(part.to(device) for part in batch))


def collate(examples: Sequence[Example], per: Per) -> Batch:
    """Pad examples to one `Batch`; `per` says whether targets have a time axis to pad, too, and with what.

    Raises:
        ValueError: if there is none, or one has no steps.
    """
    lengths = torch.tensor([len(e.inputs) for e in examples])
    if not len(lengths) or lengths.min() < 1:
        raise ValueError(f"examples: expected sequences of at least one step, got lengths {lengths.tolist()}")
    targets = [e.target for e in examples]
    return Batch(
        pad_sequence([e.inputs for e in examples], batch_first=True),
        torch.stack(targets)
        if per == "sequence"
        else pad_sequence(targets, batch_first=True, padding_value=0 if per == "step" else IGNORED),
        lengths,
    )


def real_steps(batch: Batch) -> Tensor:
    """(B, T) bool: True at a sequence's own steps, False at its padding."""
    return real_positions(batch.lengths, batch.inputs.shape[1])


def sequence_count(batch: Batch) -> Tensor:
    """How many sequences the batch holds, as a scalar on its device."""
    return batch.lengths.new_full((), len(batch.lengths))


def widened(x: Tensor) -> Tensor:
    """`x` in at least float32: a sum of many half-precision terms would lose the small ones."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Examples(Sequence[Example]):
    """`size` examples, each made by `make(index)` when it is asked for, so that small raw data stay small.

    A loader asks for a batch of them, which `make_many(indices)`, if given, makes faster. Where they are `endless`,
    both also make examples of indices beyond `size`.
    """

    def __init__(
        self,
        size: int,
        make: Callable[[int], Example],
        make_many: Callable[[list[int]], list[Example]] | None = None,
        endless: bool = False,
    ) -> None:
        self._size, self._make, self.endless = size, make, endless
        self._make_many = make_many or (lambda indices: [make(i) for i in indices])

    def __getitems__(self, indices: list[int]) -> list[Example]:
        """What torch's `DataLoader` asks for."""
        return self._make_many(indices)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._size))]
        return self._make(range(self._size)[index])  # counts from the end, and raises IndexError outside
