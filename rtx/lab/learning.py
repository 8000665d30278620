"""The simplest training there is, one update at a time."""

import math
from collections.abc import Iterator
from itertools import count

import torch
from torch import nn

from rtx.nn.mode import evaluating
from rtx.nn.validate import check_above_zero
from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Task, where_it_is


def learn(
    task: Task, model: nn.Module, learning_rate: float, batch_size: int = 32, clip: float | None = 1.0, seed: int = 0
) -> Iterator[float]:
    """Train with Adam on the training split, epoch after epoch without end; yield the mean loss of each batch.

    Args:
        task, batch_size, seed: what to learn, how many sequences per update, and in which order.
        model: one that `task.predict` can call, on any device. It is left in training mode.
        learning_rate: of Adam, constant.
        clip: largest gradient norm; None leaves gradients as they are.

    Raises:
        ValueError: at the first update, if a number is out of its range; later, if the loss is not finite.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=check_above_zero("learning_rate", learning_rate))
    if clip is not None:
        check_above_zero("clip", clip)
    batches = loader(task, "train", batch_size, seed)
    for epoch in count():
        batches.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]
        for batch in batches:
            batch = where_it_is(model, batch)
            model.train()
            loss = task.loss(task.predict(model, batch), batch)
            mean = loss.total / loss.count
            optimizer.zero_grad()
            mean.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if not math.isfinite(found := mean.item()):
                raise ValueError(f"loss: became {found} in epoch {epoch + 1}; try a lower learning_rate")
            yield found


@torch.no_grad()
def score(task: Task, model: nn.Module, batch: Batch) -> float:
    """The task's metric of a model for one batch."""
    with evaluating(model):
        return task.score(task.predict(model, batch), batch)
