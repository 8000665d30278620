"""What an experiment is: its examples, its loss, its score. One `Task` object holds all three."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from rtx.nn.padding import real_positions
from rtx.nn.validate import check_choice
from rtx.tasks.subwords import Subwords
from rtx.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torchmetrics import Metric

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

Per = Literal["step", "sequence", "token", "pair"]
"""What a model predicts: something at each step of a sequence of vectors; one thing for the whole sequence; the next
token of a text at each of its tokens; or the next token of a target sentence, given a source sentence."""

IGNORED = -100  # the target of a token that is not scored (context, padding); torch's cross-entropy ignores it
Scores = dict[str, float | str]  # scores by name, and how they were measured
Text = Vocabulary | Subwords  # reads and writes one kind of tokens


class Example(NamedTuple):
    """One sequence and its target.

    Inputs are (T, F) numbers; for "token" and "pair" they are (T,) tokens of a text or of a source sentence. The target
    is (T, K) for "step" and (K,) or () for "sequence". For "token" it is (T,): the token after each one, or `IGNORED`.
    For "pair" it is the target sentence from its begin to its end token.
    """

    inputs: Tensor
    target: Tensor


class Batch(NamedTuple):
    """Sequences padded at their end to the longest: inputs with 0, targets with 0 or, if they are tokens, `IGNORED`.

    `lengths` (B,) are the real steps of the inputs.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class Sum:
    """A sum over what is scored (frames, sequences), and their number."""

    total: Tensor
    count: Tensor


def mean_metric() -> "Metric":
    """Return torchmetrics' weighted mean. The mean is NaN as soon as one value is."""
    from torchmetrics import MeanMetric  # takes a second to import

    return MeanMetric(nan_strategy=math.nan)  # replaces NaN by NaN; "warn" leaves NaN out, "disable" leaves out weights


def mean_of(total: Callable[[Tensor, Batch], Sum]) -> Callable[[Tensor, Batch], tuple[Tensor, ...]]:
    """Turn a sum over a batch into what `mean_metric` takes: the mean, and its weight."""

    def measured(predictions: Tensor, batch: Batch) -> tuple[Tensor, ...]:
        found = total(predictions, batch)
        return found.total / found.count, found.count

    return measured


class Again:
    """What is pickled as a call that makes it again, for a process that `spawn` starts."""

    again: "Callable[[], Any] | None" = None

    def __reduce__(self) -> "str | tuple[Any, ...]":
        return (self.again, ()) if self.again else super().__reduce__()


@dataclass(frozen=True)
class Task(Again):
    """An experiment of the papers. Its loss and its metric leave out padding.

    A task of `task_by_name` can be pickled. The copy is made, and its data are read, by the same call.
    """

    name: str  # in messages and in the ledger; that of own files has their unit and names
    inputs: int  # F, numbers per step; for "token" and "pair" the number of different tokens that are read
    outputs: int  # K, numbers per prediction, or the number of different tokens that are predicted
    per: Per
    examples: Callable[[Split], Sequence[Example]]  # reads or makes the data when called
    loss: Callable[[Tensor, Batch], Sum]  # (predictions, batch) → summed loss
    measured: Callable[[Tensor, Batch], tuple[Tensor, ...]]  # (predictions, batch) → what the scorer's `update` takes
    metric: str  # its name with its unit
    best: Literal["min", "max"] = "min"  # whether the lowest or the highest score is best
    scorer: Callable[[], "Metric"] = mean_metric  # makes the metric of torchmetrics
    sha256: Callable[[], str | None] = lambda: None  # checksum of the data; None if the task draws its own
    baseline: Callable[[], float] | None = None  # test score without a model, such as that of the commonest class
    examine: "Callable[[nn.Module, Split, int | None], Scores] | None" = None
    """(model, split, limit) → named scores of what the model writes for the first `limit` examples (None: all). The
    first score is the test score; without `examine` it is `metric`. Validation always uses `metric`."""
    texts: tuple[Text, ...] = ()  # how its tokens are read and written: of the text, or of source and target
    sparse: bool = False  # for "token": `predict` returns (N, V) logits of the scored tokens only, row by row
    frame_seconds: float | None = None  # how long a step lasts when music is played; None for other tasks
    about: Callable[[], dict[str, str]] | None = None  # what was read of a user's files, as name → a sentence

    @property
    def test_best(self) -> Literal["min", "max"]:
        """Whether the lowest or the highest test score is best. Written sentences are scored by BLEU or ROUGE."""
        return "max" if self.per == "pair" else self.best

    def predict(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the model's predictions for a batch. A target sentence is predicted from its tokens so far."""
        if self.per == "token":
            return model(batch.inputs, batch.targets != IGNORED) if self.sparse else model(batch.inputs)
        if self.per == "pair":
            return model(batch.inputs, batch.targets[:, :-1].clamp(min=0), batch.lengths)
        return model(batch.inputs, batch.lengths)

    def score(self, predictions: Tensor, batch: Batch) -> float:
        """Return the metric of one batch."""
        metric = self.scorer()
        metric.update(*self.measured(predictions, batch))
        return float(metric.compute())

    def split(self, name: str) -> Sequence[Example]:
        """Return the examples of "train", "validation" or "test"."""
        check_choice("split", name, SPLITS)
        examples = self.examples(name)  # type: ignore[arg-type]
        if self.again and isinstance(examples, Examples):
            examples.again = partial(self.split, name)
        return examples


def where_it_is(model: nn.Module, batch: Batch) -> Batch:
    """Return the batch on the device of the model's parameters."""
    device = next(model.parameters()).device
    return Batch(*(part.to(device) for part in batch))


def collate(examples: Sequence[Example], per: Per) -> Batch:
    """Pad examples to one `Batch`. `per` decides whether targets have a time axis, and how it is padded."""
    check_choice("per", per, get_args(Per))
    lengths = torch.tensor([len(e.inputs) for e in examples])
    if not len(lengths) or lengths.min() < 1:
        raise ValueError(f"examples: expected sequences of at least one step, got lengths {lengths.tolist()}")
    inputs, targets = pad_sequence([e.inputs for e in examples], batch_first=True), [e.target for e in examples]
    if per == "sequence":
        return Batch(inputs, torch.stack(targets), lengths)
    filled = pad_sequence(targets, batch_first=True, padding_value=0 if per == "step" else IGNORED)
    return Batch(inputs, filled, lengths)


def real_steps(batch: Batch) -> Tensor:
    """(B, T) bool: True at a sequence's own steps, False at its padding."""
    return real_positions(batch.lengths, batch.inputs.shape[1])


def widened(x: Tensor) -> Tensor:
    """Return `x` in at least float32. A sum of many terms in half precision would lose the small ones."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Examples(Again, Sequence[Example]):
    """`size` examples. `make(indices)` makes those that are needed, so raw data that are small stay small.

    `endless`: `make` also makes examples of indices beyond `size`. `apart`: they are not the pieces of one text.
    """

    def __init__(
        self, size: int, make: Callable[[list[int]], list[Example]], endless: bool = False, apart: bool = False
    ) -> None:
        self._size, self._make, self.endless, self.apart = size, make, endless, apart

    def __getitems__(self, indices: list[int]) -> list[Example]:
        """Return a batch of examples: torch's `DataLoader` calls this."""
        return self._make(indices)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._make(list(range(*index.indices(self._size))))
        return self._make([range(self._size)[index]])[0]  # counts from the end, and raises IndexError outside
