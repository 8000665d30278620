"""One look into a model at work, whichever it is: attention if it has some, else channels, else its states."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.tracing import Trace, trace
from rtx.models import LanguageModel
from rtx.nn.mode import evaluating
from rtx.tasks.build import SequenceModel
from rtx.tasks.task import IGNORED, Batch, Task

LONGEST = 64  # steps shown


class Look(NamedTuple):
    """A matrix to draw, its first row on top, and what it is."""

    values: Float[Tensor, "rows columns"]
    x: str
    y: str
    title: str


@torch.no_grad()
def look(task: Task, model: nn.Module, batch: Batch) -> Look:
    """What goes on in `model` for the first sequence of a batch, its first 64 steps.

    Of attention over time the mean of the heads in the last layer that has some; for pairs of sentences the alignment
    along the true target; of MC-RNN the channels' weights; of any other model with a backbone the states it puts out.

    Raises:
        ValueError: if there is none of all that in the model.
    """
    steps = min(int(batch.lengths[0]), LONGEST)
    x = batch.inputs[:1, :steps]
    if task.per == "pair":
        target = batch.targets[:1, : int((batch.targets[0] != IGNORED).sum()) - 1]
        with evaluating(model):
            weights = model.align(x, target)[0]  # type: ignore[operator]
        return Look(weights.cpu(), "source token", "target token", "where it looks")
    states: list[Tensor] = []
    hook = None
    if isinstance(model, (SequenceModel, LanguageModel)):
        hook = model.get_submodule("backbone").register_forward_hook(lambda _m, _x, out: states.append(out))
    try:
        return _choose(trace(model, x), states)
    finally:
        if hook is not None:
            hook.remove()


def _choose(found: Trace, states: list[Tensor]) -> Look:
    named = {kind: [v for k, v in found.items() if k.split(".")[-1] == kind] for kind in ("weights", "attention")}
    heads = [v for kind in named.values() for v in kind if v.ndim == 4]  # (B, H, T, S)
    if heads:
        return Look(heads[-1][0].mean(0).cpu(), "step looked at", "step", "attention, mean of the heads")
    shares = [v for v in named["attention"] if v.ndim == 2]  # (B, T)
    if shares:
        return Look(shares[-1].cpu(), "step", "", "share of each step")
    channels = [v for k, v in found.items() if k.endswith("channel_weights")]  # (B, T, C)
    if channels:
        return Look(channels[-1][0].T.cpu(), "step", "channel", "weights of the channels")
    if not states:
        raise ValueError("model: expected attention, channels or a backbone to look at, found none")
    return Look(states[-1][0].T.cpu(), "step", "unit", "states of the last layer")
