"""What an experiment is: its examples, its loss, its score. One `Task` object holds all three."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rtx.nn.validate import check_choice

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class Example(NamedTuple):
    """One sequence: inputs (T, F) and its target, (T, K) for a step task, (K,) or () for a sequence task."""

    inputs: Tensor
    target: Tensor


class Batch(NamedTuple):
    """Sequences padded at their end with zeros to the longest: (B, T, F), targets, and lengths (B,)."""

    inputs: Tensor
    targets: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class Sum:
    """A sum over what is scored (frames, sequences) and how many there were: sums of batches add up."""

    total: Tensor
    count: Tensor


@dataclass(frozen=True)
class Task:
    """An experiment of the papers.

    Args:
        name: as on the command line.
        inputs: F, numbers per step.
        outputs: K, numbers per prediction.
        per: one prediction per "step", or one per "sequence", read at its last real step.
        examples: split → its examples; reads or makes the data when called.
        loss: (predictions, batch) → summed loss; padding is left out.
        score: (predictions, batch) → summed metric; padding is left out.
        metric: the metric's name with its unit.
        best: whether the lowest ("min") or the highest ("max") score is best.
        sha256: checksum of the data; None where the task makes its own.
    """

    name: str
    inputs: int
    outputs: int
    per: Literal["step", "sequence"]
    examples: Callable[[Split], Sequence[Example]]
    loss: Callable[[Tensor, Batch], Sum]
    score: Callable[[Tensor, Batch], Sum]
    metric: str
    best: Literal["min", "max"]
    sha256: Callable[[], str | None] = lambda: None

    def split(self, name: str) -> Sequence[Example]:
        """The examples of "train", "validation" or "test".

        Raises:
            ValueError: if there is no such split.
        """
        check_choice("split", name, SPLITS)
        return self.examples(name)  # type: ignore[arg-type]


def collate(examples: Sequence[Example], per: Literal["step", "sequence"]) -> Batch:
    """Pad examples to one `Batch`; `per` says whether targets have a time axis to pad, too.

    Raises:
        ValueError: if there is none, or one has no steps.
    """
    lengths = torch.tensor([len(e.inputs) for e in examples])
    if not len(lengths) or lengths.min() < 1:
        raise ValueError(f"examples: expected sequences of at least one step, got lengths {lengths.tolist()}")
    targets = [e.target for e in examples]
    return Batch(
        pad_sequence([e.inputs for e in examples], batch_first=True),
        pad_sequence(targets, batch_first=True) if per == "step" else torch.stack(targets),
        lengths,
    )


def real_steps(batch: Batch) -> Tensor:
    """(B, T) bool: True at a sequence's own steps, False at its padding."""
    return torch.arange(batch.inputs.shape[1], device=batch.lengths.device) < batch.lengths[:, None]


def sequence_count(batch: Batch) -> Tensor:
    """How many sequences the batch holds, as a scalar on its device."""
    return torch.tensor(len(batch.lengths), device=batch.lengths.device)


def widened(x: Tensor) -> Tensor:
    """`x` in at least float32: a sum of many half-precision terms would lose the small ones."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Examples(Sequence[Example]):
    """`size` examples, each made by `make(index)` when it is asked for, so that small raw data stay small."""

    def __init__(self, size: int, make: Callable[[int], Example]) -> None:
        self._size, self._make = size, make

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
