"""A recipe's row in training, beside the notebook: what `rtx train` does, to be watched, paused and stopped."""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from rtx.lab.background import Background
from rtx.lab.learning import History
from rtx.lab.look import Look, look
from rtx.nn.mode import evaluating
from rtx.tasks.task import Batch, Task, where_it_is
from rtx.training.recipe import Plan

if TYPE_CHECKING:
    from rtx.training.module import Trainee


class TrainingRun:
    """One plan in training: `background` starts, pauses, resumes and stops it; `history` grows meanwhile.

    It is `rtx train` without a ledger: the same seed gives the same numbers, and in the end `model` has the weights
    of the best validation; stopped before, those it had. Random numbers are its own: a cell that draws at the very
    moment of a step may disturb them, any other does not.

    Args:
        plan: of a recipe.
        seed: of weights, order and dropout.
        watch: called now and then, in the thread that trains.
        name: of who owns it.
    """

    def __init__(
        self, plan: Plan, seed: int = 0, watch: Callable[[], object] = lambda: None, name: str = "training"
    ) -> None:
        self.plan, self.seed, self.history = plan, seed, History()
        self.background = Background(self._train, watch, name)
        self.steps = 0  # of the whole run
        self.parameters = 0
        self.probe: Batch | None = None
        self._trainee: Trainee | None = None

    @property
    def task(self) -> Task | None:
        """What it learns, once the data are read."""
        return None if self._trainee is None else self._trainee.task

    @property
    def model(self) -> nn.Module | None:
        """What learns, once it is made."""
        return None if self._trainee is None else self._trainee.model

    def score_probe(self) -> None:
        """Add the metric of the first batch of the validation split to the history; for `watch`."""
        if self.task is None or self.model is None or self.probe is None:
            return
        probe = where_it_is(self.model, self.probe)  # Lightning takes a model off a GPU when its training ends
        with torch.no_grad(), evaluating(self.model):
            score = self.task.score(self.task.predict(self.model, probe), probe)
        self.history.probes.append((len(self.history.losses), score))

    def look(self) -> Look | None:
        """What goes on inside, for the probe's first sequence; for `watch`. None before the data are read."""
        if self.task is None or self.model is None or self.probe is None:
            return None
        return look(self.task, self.model, where_it_is(self.model, self.probe))

    def _train(self, background: Background) -> None:
        from rtx.training.fit import fit  # Lightning takes seconds to import: only here
        from rtx.training.randomness import random_state

        kernels = random_state(torch.device("cpu"))
        with TemporaryDirectory(prefix="rtx-") as folder:
            watcher = _watcher(self, background, kernels)
            fit(self.plan, self.seed, Path(folder), callbacks=[watcher], enable_progress_bar=False)


def _watcher(run: TrainingRun, background: Background, kernels: dict[str, Any]) -> Any:
    """A Lightning callback that keeps `run`'s history, lets `background` breathe, and gives the kernel its draws."""
    from lightning import LightningModule, Trainer
    from lightning.pytorch.callbacks import Callback

    from rtx.training.randomness import random_state, set_random_state

    class Watcher(Callback):
        def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
            self.mine = random_state(pl_module.device)
            set_random_state(kernels, pl_module.device)
            run._trainee = trainee = cast("Trainee", pl_module)
            run.parameters = sum(p.numel() for p in trainee.model.parameters())

        def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
            run.steps = int(trainer.num_training_batches) * (trainer.max_epochs or 0)
            run.probe = next(iter(pl_module.val_dataloader()))
            run.score_probe()

        def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
            self.began = time.perf_counter()
            self.theirs = random_state(pl_module.device)
            set_random_state(self.mine, pl_module.device)

        def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
            self.mine = random_state(pl_module.device)
            set_random_state(self.theirs, pl_module.device)
            loss: Tensor = trainer.callback_metrics["train_loss"]
            run.history.add(float(loss), time.perf_counter() - self.began)
            background.breathe()

        def on_validation_batch_start(self, *_: Any) -> None:
            background.breathe()

        def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
            score = float(trainer.callback_metrics["validation"])
            run.history.validations.append((len(run.history.losses), score))

    return Watcher()
