"""Small digits, pixel by pixel: in the order of the image, and in another order. Who needs neighbours? (Notebook 10.)

Models of about 12,000 parameters read the 64 pixels of scikit-learn's digits. 540 updates of 32 images are 12 passes
over the training images. `python -m studies.digits_in_order` writes `digits_in_order.json`. It takes about 40 minutes
of one core.
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
MAKERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": partial(rtx.RNN, 44, cell="gru"),
    "TCN": partial(rtx.TCN, 22, 4, 3),
    **{f"Transformer, {norm}-norm": partial(rtx.Transformer, 24, 2, 2, norm=norm) for norm in ("post", "pre")},
    **{
        f"R-Transformer, {norm}-norm": partial(rtx.RTransformer, 18, 2, 2, window=8, norm=norm)
        for norm in ("post", "pre")
    },
}


def _reader(make: Callable[[], nn.Module]) -> SequenceModel:
    return SequenceModel(make(), inputs=1, outputs=10, per="sequence")  # type: ignore[arg-type]


@cache
def images(task: Task, split: str) -> Batch:
    """Return all images of a split."""
    return collate(list(task.split(split)), task.per)


def draw(task: Task, size: int) -> tuple[Batch]:
    """Return so many training images, chosen at random."""
    every = images(task, "train")
    chosen = torch.randint(len(every.inputs), (size,))
    return (Batch(*(part[chosen] for part in every)),)


def loss(task: Task, model: nn.Module, batch: Batch) -> Tensor:
    """Return the cross-entropy per image."""
    total = task.loss(task.predict(model, batch), batch)
    return total.total / total.count


def right(task: Task, split: str, model: nn.Module) -> Scores:
    """Return the share of images that are named rightly."""
    batch = images(task, split)
    return {"right": [(task.predict(model, batch).argmax(-1) == batch.targets).float().mean().item()]}


def problem(name: str) -> Problem:
    """Return one order of the pixels as a problem."""
    task = task_by_name(name)
    return Problem(
        {model: partial(_reader, make) for model, make in MAKERS.items()},
        partial(draw, task),
        partial(loss, task),
        partial(right, task, "test"),
        after=(45, 135, 270, 540),
        rates=WIDE,
        validate=partial(right, task, "validation"),
    )


PROBLEMS = {"row by row": problem("digits"), "permuted": problem("permuted-digits")}

if __name__ == "__main__":
    compare(STORED, PROBLEMS)
