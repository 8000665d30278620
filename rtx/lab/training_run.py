"""A recipe's row in training, beside the notebook: what `rtx train` does, to be watched, paused and stopped."""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from rtx.lab.background import Background
from rtx.lab.choice import Choice
from rtx.lab.learning import History
from rtx.lab.look import Look, look
from rtx.nn.mode import evaluating
from rtx.tasks.task import Batch, Task, where_it_is

if TYPE_CHECKING:
    from rtx.training.module import Trainee

LOOKS = 8  # that are kept


class TrainingRun:
    """One plan in training: `background` starts, pauses, resumes and stops it; `history` grows meanwhile.

    It is `rtx train` without a ledger: the same seed gives the same numbers, and in the end `model` has the weights
    of the best validation; stopped before, those it had. Random numbers are its own: a cell that draws at the very
    moment of a step may disturb them, any other does not.

    Args:
        choice: what to train.
        watch: called now and then, in the thread that trains, after a look into the model.
        name: of who owns it.

    Raises:
        ValueError: if there is no such plan.
    """

    def __init__(self, choice: Choice, watch: Callable[[], object] = lambda: None, name: str = "training") -> None:
        self.choice, self.plan, self.history = choice, choice.plan(), History()
        self.export = f"{choice.command()}\n\n{choice.code()}"
        self.looks: list[tuple[int, Look]] = []  # (updates so far, what went on inside)
        self.background = Background(self._train, self._watch, name)
        self.watch = watch
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

    @property
    def told(self) -> str:
        """How far it is; empty before its first update."""
        history = self.history
        if not history.losses:
            return ""
        done = f"update {len(history.losses):,} of {self.steps:,}, loss {history.losses[-1]:.3f}"
        return f"{done}, {history.seconds[-1]:.1f} s of learning"

    def told_at(self, update: int) -> str:
        """How good it was after so many updates, or at its end."""
        update = min(update, len(self.history.losses))
        loss = f", loss {self.history.losses[update - 1]:.3f}" if update else ""
        scores = [score for at, score in self.history.probes if at <= update]
        metric = f"; {self.task.metric} of one validation batch: {scores[-1]:.3f}" if scores and self.task else ""
        return f"After {update:,} updates{loss}{metric}."

    def log(self) -> list[str]:
        """A line for each validation, and one for the end."""
        lines = [f"update {at:,}: validation {score:.4f}" for at, score in self.history.validations]
        return [*lines, f"{self.background.state} {self.background.error}".strip()]

    def look(self) -> None:
        """Score the first batch of the validation split, and look at its first sequence, for the history.

        In the thread that trains: nobody else may look into a model that is learning. Of many looks some are kept.
        """
        if self.task is None or self.model is None or self.probe is None:
            return
        probe = where_it_is(self.model, self.probe)  # Lightning takes a model off a GPU when its training ends
        with torch.no_grad(), evaluating(self.model):
            score = self.task.score(self.task.predict(self.model, probe), probe)
        update = len(self.history.losses)
        self.history.probes.append((update, score))
        seen = look(self.task, self.model, probe)
        if bool(seen.values.isfinite().all()):
            self.looks.append((update, seen))
        if len(self.looks) > LOOKS:  # the one whose neighbours are nearest is the least missed
            del self.looks[min(range(1, LOOKS), key=lambda i: self.looks[i + 1][0] - self.looks[i - 1][0])]

    def _watch(self) -> None:
        self.look()
        self.watch()

    def _train(self, background: Background) -> None:
        from rtx.training.fit import fit  # Lightning takes seconds to import: only here
        from rtx.training.randomness import random_state

        kernels = random_state(torch.device("cpu"))
        with TemporaryDirectory(prefix="rtx-") as folder:
            watcher = _watcher(self, background, kernels)
            fit(self.plan, self.choice.seed, Path(folder), callbacks=[watcher], enable_progress_bar=False)


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
            run.look()

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
