"""Checkpoints from which a run continues as if it had never stopped, and the ways to stop a run.

A checkpoint is the state just before a batch, when all batches before it have led to an update. Lightning's own
`ModelCheckpoint` saves in the middle of its loops. Then random states, the plateau schedule and the place inside an
epoch are lost.
"""

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from rtx.training.provenance import stamp
from rtx.training.states import Exploded, random_state, save_state, set_random_state

log = logging.getLogger(__name__)
TIMEOUT = 124  # exit code of coreutils' `timeout`


class Stopped(BaseException):  # as KeyboardInterrupt: logging, for example, catches and prints every Exception
    """A run was stopped by a signal or by its time limit, and can be resumed.

    `code` is the exit code for the process: 128 + the signal's number, as in shells, or 124 for the time limit.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Survival(Callback):
    """Writes `last.ckpt` and, at the best validation, `best.ckpt` into a folder; stops the run when asked to.

    Args:
        resume: continue from the checkpoint in the folder. Otherwise the checkpoints are removed, and a finished model
            becomes `former.safetensors`.
        every_seconds: time between two checkpoints. There is also one at the start of each epoch.
        max_seconds: time after which the run saves and stops.
    """

    def __init__(
        self, folder: Path, best: Literal["min", "max"], resume: bool, every_seconds: float, max_seconds: float | None
    ) -> None:
        self.folder, self.mode, self.resume, self.every_seconds = folder, best, resume, every_seconds
        self.stop_at = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self.epoch, self.score = 0, math.nan  # of the best validation
        self.ended: str | None = None  # when training was complete
        self.stopped_early = False
        self.random: dict[str, Any] | None = None  # of the checkpoint, until the first batch
        self.training = False
        self.asked: int | None = None  # the signal that asked the training to stop
        self.saved_at = 0.0
        self.last = folder / "last.ckpt"

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Remove the checkpoints of a former run, so that a new run never continues from them. Its model is kept."""
        if stage == "fit" and not self.resume:
            if (finished := self.folder / "best.safetensors").exists():
                log.warning(
                    "the model of the former run is now %s", finished.replace(self.folder / "former.safetensors")
                )
            for name in ("last.ckpt", "best.ckpt"):
                (self.folder / name).unlink(missing_ok=True)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End at once if the resumed run had already ended early."""
        trainer.should_stop = trainer.should_stop or self.stopped_early

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Handle signals from here on instead of Lightning, which restores the former handlers at the end."""
        (self.folder / "best.safetensors").unlink(missing_ok=True)  # a run that goes on to more epochs is unfinished
        self.saved_at, self.ended, self.training = time.monotonic(), None, True
        handle_signals(self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        if not self.training or self.asked is not None:
            raise Stopped(f"stopped at once; the last checkpoint is {self.last}", 128 + number)
        self.asked = number
        log.warning("stopping before the next update, or after a validation in progress; Ctrl-C again stops at once")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Save if it is time, or if the run should stop."""
        resumed, self.random = self.random, None
        if resumed is not None:
            set_random_state(resumed, pl_module.device)
            trainer.fit_loop.restarting = False  # otherwise Lightning skips the plateau schedule after this epoch
        code, late = self._code(), time.monotonic() - self.saved_at >= self.every_seconds
        if code or (resumed is None and (late or batch_idx == 0)):
            self._save(trainer, pl_module)
        if code:
            where = f"stopped before batch {batch_idx + 1} of epoch {trainer.current_epoch + 1}, saved {self.last}"
            raise Stopped(where, code)

    def _code(self) -> int:
        """Return the exit code if the run was asked to stop or its time is over, otherwise 0."""
        if self.asked is not None:
            return 128 + self.asked
        return TIMEOUT if time.monotonic() >= self.stop_at else 0

    def _save(self, trainer: Trainer, module: LightningModule) -> None:
        for name, parameter in module.named_parameters():
            if not torch.isfinite(parameter).all():
                raise Exploded(f"{name}: became NaN or infinite before step {trainer.global_step}; {self.kept()}")
        trainer.save_checkpoint(self.last)
        self.saved_at = time.monotonic()

    def kept(self) -> str:
        """Return a sentence about the last checkpoint, for an error message."""
        return f"--resume continues from {self.last}" if self.last.exists() else "there is no checkpoint yet"

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the weights that were validated if they are the best so far."""
        score = float(trainer.callback_metrics["validation"])
        if not math.isfinite(score):
            step = trainer.global_step
            raise Exploded(f"validation: became {score} after step {step}, expected a finite number; {self.kept()}")
        if math.isnan(self.score) or (score < self.score if self.mode == "min" else score > self.score):
            self.epoch, self.score = trainer.current_epoch, score
            with pl_module.as_validated():  # type: ignore[operator]
                weights = pl_module.model.state_dict()  # type: ignore[union-attr]
                save_state(self.folder / "best.ckpt", {"epoch": self.epoch, "score": score, "model": weights})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save once more. If the test is interrupted, only the test is repeated."""
        self.ended, self.stopped_early = stamp(), trainer.should_stop
        self._save(trainer, pl_module)
        self.training = False
        if code := self._code():
            raise Stopped(f"stopped at the end of training, saved {self.last}", code)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to know about this callback."""
        return {"epoch": self.epoch, "score": self.score, "ended": self.ended, "stopped_early": self.stopped_early}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        vars(self).update(state_dict)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Add the random states, and set Lightning's counters between two batches."""
        checkpoint["random"] = [random_state(pl_module.device)]  # a list, as in older checkpoints
        checkpoint["batches"] = 0 if self.ended else between_batches(checkpoint["loops"]["fit_loop"])

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Restore the random states and the place in the epoch."""
        self.random, pl_module.batches_done = checkpoint["random"][0], checkpoint["batches"]


def between_batches(loops: dict[str, Any]) -> int:
    """Change Lightning's counters, when a batch has begun, to those just before it; return the batch's number.

    At the start of an epoch these are the counters of a run that has finished the epoch before. Inside an epoch they
    are Lightning's counters after a batch, which it counts as completed only when it continues.
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


@contextmanager
def interruptible(folder: Path) -> Iterator[None]:
    """Raise `Stopped` at Ctrl-C or SIGTERM inside the block, for the work before and after training.

    Lightning would exit with 1 at Ctrl-C, and with 0 at SIGTERM, as if the run were finished.
    """

    def stop(number: int, frame: object) -> None:
        raise Stopped(f"stopped outside of training; the files of the run are in {folder}", 128 + number)

    before = handle_signals(stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def handle_signals(handler: Callable[[int, Any], None]) -> dict[int, Any]:
    """Set a handler for Ctrl-C and SIGTERM; return the former handlers. Other threads than the first get no signals."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
