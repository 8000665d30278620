"""Training steps on a GPU without launching every operation: forward and backward pass, replayed as a CUDA graph.

The check that loss and gradient are finite, clipping and the optimiser's few kernels follow as in any other step: a run
must be able to stop before its weights are spoilt.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from lightning import Trainer
from torch import Tensor, nn

from rtx.models import HMRNN
from rtx.nn.kernels.graphs import recorded
from rtx.tasks.task import Batch, Sum
from rtx.training.module import Trainee
from rtx.training.randomness import random_state, set_random_state

log = logging.getLogger(__name__)

Losses = Callable[[Batch], tuple[Sum, Tensor]]
"""batch → the loss's parts, and what is to be differentiated."""


class StaticSteps:
    """The gradients of batches of one shape, computed in place, as a CUDA graph replays it.

    A batch is copied to where the first one lies; the gradients' tensors stay. Batches of other shapes, as the last of
    an epoch may be, are computed as they come, into the same gradients.

    Args:
        losses: what to compute of a batch.
        parameters: whose gradients are set.
        record: make a CUDA graph of it at the first batch.
    """

    def __init__(self, losses: Losses, parameters: Iterable[nn.Parameter], record: bool) -> None:
        self.losses, self.parameters, self.record = losses, list(parameters), record
        self.place: Batch | None = None
        self.replay: Callable[[], object] = self._in_place
        self.others: set[tuple[int, ...]] = set()  # shapes that the log has spoken of

    def __call__(self, batch: Batch) -> tuple[Sum, Tensor]:
        """Set the gradients; what the batch's losses are, without a way back, until the next call.

        Raises:
            ValueError: if the step cannot be recorded.
        """
        if self.place is None:
            self.place = Batch(*(one.clone() for one in batch))
            if self.record:
                device = batch.inputs.device
                before = random_state(device)
                self.replay = recorded(self._in_place, device)
                set_random_state(before, device)  # a resumed run records again, and shall drop the same units
        if [one.shape for one in batch] != [one.shape for one in self.place]:
            self._tell(tuple(batch.inputs.shape))
            return self._gradients(batch)
        for place, one in zip(self.place, batch, strict=True):
            place.copy_(one)
        self.replay()
        return self.found

    def _in_place(self) -> None:
        assert self.place is not None
        self.found = self._gradients(self.place)

    def _gradients(self, batch: Batch) -> tuple[Sum, Tensor]:
        kind = batch.inputs.device.type
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.zero_()
        # The weights that autocast rounds must be rounded anew in each replay, so that none may be remembered; and
        # one that is used at many steps gets the sum of its gradients in float32 so.
        dtype, enabled = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        with torch.autocast(kind, dtype, enabled, cache_enabled=False):
            loss, objective = self.losses(batch)
        with torch.autocast(kind, enabled=False):
            objective.backward()
        return Sum(loss.total.detach(), loss.count), objective.detach()

    def _tell(self, shape: tuple[int, ...]) -> None:
        if shape not in self.others:
            self.others.add(shape)
            log.info("--graph: the graph is of batches %s, one of %s goes without", tuple(self.place[0].shape), shape)  # type: ignore[index]


def record_steps(trainee: Trainee, trainer: Trainer) -> bool:
    """Have a trainee's steps recorded at its first batch; or say why they cannot be, and leave it as it is."""
    said = obstacle(trainee, trainer)
    if said:
        log.warning("--graph: %s; training goes on without", said)
        return False
    trainee.steps = static_steps(trainee, record=True)
    return True


def static_steps(trainee: Trainee, record: bool) -> StaticSteps:
    """A trainee's steps, in place. All positions of a text are decoded: how many are scored, only the GPU knows."""
    trainee.task = replace(trainee.task, sparse=False)

    def losses(batch: Batch) -> tuple[Sum, Tensor]:
        loss = trainee.loss(batch)
        return loss, trainee.objective(loss, loss.count)

    return StaticSteps(losses, trainee.parameters(), record)


def obstacle(trainee: Trainee, trainer: Trainer) -> str | None:
    """Why a trainee's steps cannot be recorded, or None if they can."""
    chosen, device = trainee.settings, trainer.strategy.root_device
    reasons = {
        f"graphs are made for CUDA devices, and this run is on {device}": device.type != "cuda",
        "several processes train together": trainer.world_size > 1,
        "gradients of several batches are added up": chosen.accumulate > 1,
        "a state is carried from batch to batch": chosen.carry,
        "auxiliary losses change from step to step": trainee.auxiliary is not None,
        "HM-RNN's slope changes from epoch to epoch": any(isinstance(one, HMRNN) for one in trainee.model.modules()),
        "sentences have lengths of their own": trainee.task.per == "pair",
        f"losses are scaled at precision {trainer.precision}": getattr(trainer.precision_plugin, "scaler", None)
        is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
