"""What a run tells while it trains: what is trained, and about every ten seconds how far it is."""

import time
from collections.abc import Callable
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Timer
from torch import nn

from rtx.tasks import Task
from rtx.training.recipe import Plan

Tell = Callable[[str, dict[str, Any]], None]
"""Takes the kind of an event ("start", "progress" or "trained") and its facts, as plain values."""


class Progress(Callback):
    """Tells what is trained, then about every `every_seconds` how far the training is, then that it ended."""

    def __init__(self, plan: Plan, tell: Tell, timer: Timer, every_seconds: float = 10.0) -> None:
        self.plan, self.tell, self.timer, self.every_seconds = plan, tell, timer, every_seconds
        self.began = self.told = 0.0
        self.before = 0  # batches that a resumed run had done

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Tell what is trained, before the data are read."""
        if stage == "fit":
            self.tell("start", facts(self.plan, pl_module.task, pl_module.model))  # type: ignore[arg-type]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self.began = self.told = time.monotonic()
        self.before = trainer.fit_loop.total_batch_idx + 1

    def on_train_batch_end(self, trainer: Trainer, *_: Any, **__: Any) -> None:
        """Tell how far the training is, if it is time."""
        now = time.monotonic()
        if now - self.told >= self.every_seconds:
            self.told = now
            self.tell("progress", self._progress(trainer, now - self.began))

    on_validation_batch_end = on_train_batch_end  # a validation may be long

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Tell after how many epochs the training ended."""
        self.tell("trained", {"epochs": trainer.current_epoch})

    def _progress(self, trainer: Trainer, seconds: float) -> dict[str, Any]:
        steps, settings = int(trainer.num_training_batches), self.plan.settings
        done = trainer.fit_loop.total_batch_idx + 1
        epochs = int(trainer.max_epochs or settings.epochs)
        left = seconds / max(done - self.before, 1) * (epochs * steps - done)
        limit = self.timer.time_remaining()  # None without a limit; it counts the earlier parts of a resumed run, too
        scores = {name: float(value) for name, value in trainer.callback_metrics.items()}
        return {
            "seconds": round(seconds),
            "epoch": trainer.current_epoch + 1,
            "epochs": epochs,
            "step": trainer.fit_loop.batch_idx + 1,
            "steps": steps,
            "loss": scores.get("train_loss"),
            "validation": scores.get("validation"),
            "seconds_left": round(left if limit is None else min(left, max(limit, 0))),
            "may_end_early": settings.stop_after is not None or settings.stop_at is not None,
        }


def facts(plan: Plan, task: Task, model: nn.Module) -> dict[str, Any]:
    """Return what is trained and what its score can be compared with.

    `baseline` is the test score without a model. `paper` is the paper's number; None if this scale trains on another
    task, or on sequences of another length (`same_data` is false).
    """
    recipe = plan.recipe
    papers = recipe.plan(plan.row, plan.variant.split("+")[0])
    told = [(one.task, *map(one.task_arguments.get, ("length", "longest"))) for one in (papers, plan)]
    same_task = told[0] == told[1]
    return {
        "recipe": recipe.name,
        "task": plan.task,
        "same_data": same_task,
        "model": plan.row,
        "variant": plan.variant,
        "scale": plan.scale,
        "parameters": sum(p.numel() for p in model.parameters()),
        "about": task.about() if task.about else {},
        "metric": task.metric,
        "best": task.best,
        "test_best": task.test_best,
        "baseline": task.baseline() if task.baseline else None,
        "paper": recipe.paper(plan.row) if same_task else None,
        "source": recipe.source,
    }
