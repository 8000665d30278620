"""Checkpoints from which a run goes on as if nothing had happened, and the ways to stop one.

A checkpoint is the state just before a batch whose predecessors have all led to an update. Lightning's own callback
saves in the middle of its loops instead: random states, a plateau's schedule and the place inside an epoch get lost.
"""

import logging
import math
import signal
import threading
import time
from pathlib import Path
from typing import Any, Literal

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from rtx.training.processes import highest, mine, of_all, together
from rtx.training.provenance import stamp
from rtx.training.randomness import random_state, set_random_state
from rtx.training.states import Exploded, previous, save_state

log = logging.getLogger(__name__)
GO_ON, SAVE, STOP = range(3)
TIMEOUT = 124  # exit code of coreutils' `timeout`


class Stopped(Exception):
    """A run was stopped, by a signal or its time, and can be resumed.

    Args:
        message: where it stands.
        code: what the process should exit with: 128 + the signal, as shells have it, or 124 for the time.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Survival(Callback):
    """Writes `last.ckpt` while it trains, `best.ckpt` when validation is the best so far; stops when asked to.

    Args:
        folder: where it writes.
        best: whether the lowest ("min") or the highest ("max") validation is best.
        resume: go on from what is in the folder; else that is removed.
        every_seconds: between two checkpoints; there is also one at the start of each epoch.
        every_steps: or so many updates, if given.
        max_seconds: after so long, the run saves and stops.
    """

    def __init__(
        self,
        folder: Path,
        best: Literal["min", "max"],
        resume: bool = False,
        every_seconds: float = 300,
        every_steps: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.folder, self.mode, self.resume = folder, best, resume
        self.every_seconds, self.every_steps = every_seconds, every_steps or math.inf
        self.stop_at = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self.epoch, self.score = 0, math.nan  # of the best validation
        self.ended: str | None = None  # when training came to its own end
        self.stopped_early = False
        self.random: dict[str, Any] | None = None  # of the run before, until the first batch
        self.asked: int | None = None  # the signal that came
        self.told = False
        self.saved_at, self.saved_step = 0.0, 0

    @property
    def last(self) -> Path:
        """The newest checkpoint."""
        return self.folder / "last.ckpt"

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """A run that starts afresh must never go on from another's checkpoint."""
        if stage == "fit" and not self.resume and trainer.is_global_zero:
            for path in (self.last, previous(self.last), self.folder / "best.ckpt", self.folder / "best.safetensors"):
                path.unlink(missing_ok=True)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """A run that ended early does not go on."""
        trainer.should_stop = trainer.should_stop or self.stopped_early

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Listen to signals; Lightning, which gives them back at the end, has put its own handlers here before."""
        self.saved_at, self.saved_step, self.ended = time.monotonic(), trainer.global_step, None
        if threading.current_thread() is threading.main_thread():  # others get no signals
            signal.signal(signal.SIGINT, self._on_signal)
            signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        if self.asked is not None:
            raise Stopped(f"stopped at once; the run goes on from {self.last}", 128 + number)
        self.asked = number

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Save if it is time, or if the run is to stop.

        Raises:
            Stopped: if it is.
            ValueError: if the weights are no longer finite.
        """
        resumed, self.random = self.random, None
        if resumed is not None:
            set_random_state(resumed, pl_module.device)
            trainer.fit_loop.restarting = False  # else Lightning leaves out the plateau's step after this epoch
        if batch_idx % trainer.accumulate_grad_batches:
            return
        wish = highest(trainer, self._wish(trainer, batch_idx))
        if wish == STOP or (wish == SAVE and resumed is None):
            self._save(trainer, pl_module)
        if wish == STOP:
            where = f"stopped before batch {batch_idx + 1} of epoch {trainer.current_epoch + 1}, saved {self.last}"
            raise Stopped(where, self._code() or TIMEOUT)  # another process's time may be over first

    def _code(self) -> int:
        """What to exit with, if this process was asked to stop or its time is over; else 0."""
        if self.asked is not None:
            return 128 + self.asked
        return TIMEOUT if time.monotonic() >= self.stop_at else 0

    def _wish(self, trainer: Trainer, batch: int) -> int:
        if self._code():
            return STOP
        now = time.monotonic()
        late = now - self.saved_at >= self.every_seconds or trainer.global_step - self.saved_step >= self.every_steps
        return SAVE if late or batch == 0 else GO_ON

    def _save(self, trainer: Trainer, module: LightningModule) -> None:
        for name, parameter in module.named_parameters():
            if not torch.isfinite(parameter).all():
                raise Exploded(f"{name}: became NaN or infinite before step {trainer.global_step}; {self.kept()}")
        trainer.save_checkpoint(self.last)
        self.saved_at, self.saved_step = time.monotonic(), trainer.global_step

    def kept(self) -> str:
        """Which checkpoint there is, in words."""
        if not self.last.exists():
            return "there is no checkpoint yet"
        return f"{self.last} is from before, and --resume goes on from there"

    def on_validation_batch_start(self, *_: Any) -> None:
        """Inside a validation there is no place to go on from."""
        if self.asked is not None and not self.told:
            self.told = True
            log.warning("stopping when this validation has ended; asked again, at once")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the weights of the best epoch, as they were validated.

        Raises:
            Exploded: if the score is NaN.
        """
        score = float(trainer.callback_metrics["validation"])
        if math.isnan(score):
            where = f"epoch {trainer.current_epoch + 1}, step {trainer.global_step}"
            raise Exploded(f"validation: became nan at {where}, expected a number; {self.kept()}")
        if math.isnan(self.score) or (score < self.score if self.mode == "min" else score > self.score):
            self.epoch, self.score = trainer.current_epoch, score
            if trainer.is_global_zero:
                with pl_module.as_validated():  # type: ignore[operator]
                    weights = pl_module.model.state_dict()  # type: ignore[union-attr]
                    save_state(self.folder / "best.ckpt", {"epoch": self.epoch, "score": score, "model": weights})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save once more, so that only the test is repeated if that is cut short.

        Raises:
            Stopped: if a signal came, or the time was over, after the last batch had begun, as in the last validation.
        """
        self.ended = stamp()
        self.stopped_early = trainer.should_stop
        self._save(trainer, pl_module)
        if code := highest(trainer, self._code()):
            raise Stopped(f"stopped at the end of training, saved {self.last}", code)

    def stop_late(self) -> None:
        """For after the training.

        Raises:
            Stopped: if a signal came after `on_train_end`, and before Lightning gave the handlers back.
        """
        if self.asked is not None and not together():  # the others of several would wait for this one in the test
            raise Stopped(f"stopped at the end of training, saved {self.last}", 128 + self.asked)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to know of this one's past."""
        return {"epoch": self.epoch, "score": self.score, "ended": self.ended, "stopped_early": self.stopped_early}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take it up."""
        self.epoch, self.score = state_dict["epoch"], state_dict["score"]
        self.ended, self.stopped_early = state_dict["ended"], state_dict["stopped_early"]

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Add the random states of all processes; put Lightning's counters between two batches."""
        checkpoint["random"] = of_all(random_state(pl_module.device))
        checkpoint["batches"] = 0 if self.ended else between_batches(checkpoint["loops"]["fit_loop"])

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Take up this process's random states, and the place in the epoch."""
        self.random, pl_module.batches_done = mine(checkpoint["random"]), checkpoint["batches"]


def between_batches(loops: dict[str, Any]) -> int:
    """Turn Lightning's counters as they are when a batch has begun into those of just before it; return its number.

    At the start of an epoch these are the counters of a run that has finished the epoch before. Inside an epoch they
    are as Lightning has them behind a batch, which it counts as completed only when it goes on.
    """
    batches, epochs = loops["epoch_loop.batch_progress"], loops["epoch_progress"]
    first = batches["current"]["ready"] == 1
    batches["is_last_batch"] = False
    for counter in (batches["total"], batches["current"]):
        counter["ready"] -= 1
        counter["completed"] -= not first
    loops["epoch_loop.state_dict"]["_batches_that_stepped"] -= not first
    if first:
        for counter in (epochs["total"], epochs["current"]):
            counter["ready"] = counter["started"] = counter["completed"]
    return int(batches["current"]["ready"])
