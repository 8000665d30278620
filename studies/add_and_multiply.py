"""Does a model without recurrence learn to add and multiply sooner than a recurrent one? (Notebook 09.)

Feed-forward attention and the plain mean compete with a GRU and two LSTMs of about as many parameters. Every batch is
drawn anew. `python -m studies.add_and_multiply` writes `add_and_multiply.json`. It takes about 55 minutes of one core.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor, nn

import rtx
from rtx.tasks import task_by_name
from rtx.tasks.build import SequenceModel
from rtx.tasks.task import Batch, Task, collate
from studies.fair import WIDE, Problem, Scores, compare

STORED = Path(__file__).with_suffix(".json")
SIZE, TESTED = 100_000, 1000


def _recurrent(cell: str, width: int) -> SequenceModel:
    return SequenceModel(rtx.RNN(width, cell=cell), inputs=2, outputs=1, per="sequence")


def _open_gates() -> SequenceModel:
    """An LSTM whose forget gates start at sigmoid(5) = 0.993: half of what it keeps is left after 100 steps."""
    width, model = 36, _recurrent("lstm", 36)
    with torch.no_grad():
        model.backbone.network.bias_ih_l0[width : 2 * width] = 5.0  # type: ignore[attr-defined]
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "attention": partial(rtx.FeedForwardAttention, leak="coded"),
    "mean": partial(rtx.FeedForwardAttention, pooling="mean", leak="coded"),
    "GRU": partial(_recurrent, "gru", 42),
    "LSTM": partial(_recurrent, "lstm", 36),
    "LSTM, gates open": _open_gates,
}


def _batch(task: Task, split: str, indices: list[int]) -> Batch:
    examples = task.split(split)
    return collate(examples.__getitems__(indices), task.per)  # type: ignore[attr-defined]


def draw(task: Task, size: int) -> tuple[Batch]:
    """Return so many training sequences, chosen at random."""
    return (_batch(task, "train", torch.randint(SIZE, (size,)).tolist()),)


def loss(task: Task, model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean squared error."""
    total = task.loss(task.predict(model, batch), batch)
    return total.total / total.count


@cache
def tested(task: Task, split: str) -> Batch:
    """Return all sequences of a split that is not for training."""
    return _batch(task, split, list(range(TESTED)))


def solved(task: Task, split: str, model: nn.Module) -> Scores:
    """Return the share of sequences that are less than 0.04 off, and the mean squared error."""
    batch = tested(task, split)
    predictions = task.predict(model, batch)
    return {"solved": [task.score(predictions, batch)], "squared error": [loss(task, model, batch).item()]}


def problem(name: str, length: int) -> Problem:
    """Return one of the tasks, with sequences of `length` steps and up to a tenth more."""
    task = task_by_name(name, length=length, size=SIZE)
    return Problem(
        MODELS,
        partial(draw, task),
        partial(loss, task),
        partial(solved, task, "test"),
        after=(200, 400, 800),
        rates=WIDE,
        batch=100,
        validate=partial(solved, task, "validation"),
    )


PROBLEMS = {f"{name} {length}": problem(name, length) for name, length in (("add", 50), ("multiply", 50))}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
