"""The plainest training there is, one update at a time, and what a run has been through."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import torch
from torch import nn

from rtx.nn.validate import check_above_zero
from rtx.tasks.loader import loader
from rtx.tasks.task import Task, where_it_is


@dataclass
class History:
    """What a run has been through.

    Args:
        losses: of each update's batch.
        seconds: of learning up to each update: pauses, looks and scores are left out.
        probes: (updates so far, score of a few sequences of the validation split).
        validations: (updates so far, score of the whole of it).
    """

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    probes: list[tuple[int, float]] = field(default_factory=list)
    validations: list[tuple[int, float]] = field(default_factory=list)

    def add(self, loss: float, seconds: float) -> None:
        """One more update, which took so long."""
        self.losses.append(loss)
        self.seconds.append((self.seconds[-1] if self.seconds else 0.0) + seconds)


def learn(
    task: Task, model: nn.Module, learning_rate: float, batch_size: int = 32, clip: float | None = 1.0, seed: int = 0
) -> Iterator[float]:
    """Adam on the training split, one epoch after the other, without end: the mean loss of each update's batch.

    Args:
        task: what to learn.
        model: of `rtx.build`, or one that `task.predict` can call, on any device; it is left in training mode.
        learning_rate: of Adam, constant.
        batch_size: sequences per update.
        clip: largest gradient norm; None leaves gradients as they are.
        seed: of the order.

    Raises:
        ValueError: at the first update, if a number is out of its range; if the loss is no longer finite.
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
