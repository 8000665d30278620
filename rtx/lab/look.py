"""One look into a model at work: its attention if it has some, else its channels, else its states."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.tracing import trace
from rtx.nn.mode import evaluating
from rtx.tasks.task import IGNORED, Batch, Task

LONGEST = 64  # steps shown


class Look(NamedTuple):
    """A matrix to draw, its first row on top, and its labels."""

    values: Float[Tensor, "rows columns"]
    x: str
    y: str
    title: str


@torch.no_grad()
def look(task: Task, model: nn.Module, batch: Batch) -> Look:
    """What `model` computes for the first 64 steps of the first sequence of a batch.

    For pairs of sentences: the alignment along the true target. Else the first of these that the model has: attention
    over time (the mean of the last layer's heads), shares of the steps, weights of the channels, the backbone's states.
    """
    x = batch.inputs[:1, : min(int(batch.lengths[0]), LONGEST)]
    if task.per == "pair":
        target = batch.targets[:1, : int((batch.targets[0] != IGNORED).sum()) - 1]
        with evaluating(model):
            weights = model.align(x, target)[0]  # type: ignore[operator]
        return Look(weights.cpu(), "source token", "target token", "where it looks")
    states: list[Tensor] = []
    backbone = dict(model.named_children()).get("backbone", model)
    hook = backbone.register_forward_hook(lambda *call: states.append(call[2]))
    try:
        found = {(name.split(".")[-1], values.ndim): values for name, values in trace(model, x).items()}
    finally:
        hook.remove()
    if ("weights", 4) in found:  # (B, H, T, S), of the last layer
        return Look(found["weights", 4][0].mean(0).cpu(), "step looked at", "step", "attention, mean of heads")
    if ("weights", 2) in found:  # (B, T)
        return Look(found["weights", 2].cpu(), "step", "", "share of each step")
    if ("channel_weights", 3) in found:  # (B, T, C)
        return Look(found["channel_weights", 3][0].T.cpu(), "step", "channel", "weights of the channels")
    return Look(states[-1][0].T.cpu(), "step", "unit", "states of the last layer")
