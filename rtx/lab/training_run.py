"""A row of a recipe, trained beside the notebook as `rtx train` does it, to be watched, paused and stopped."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from rtx.lab.background import Background
from rtx.lab.choice import Choice
from rtx.lab.learning import score
from rtx.lab.look import Look, look
from rtx.lab.seeded import seeded
from rtx.tasks.task import Batch, Task, where_it_is

LOOKS = 8  # that are kept


class TrainingRun(Background):
    """One plan in training, without a ledger. The same seed gives the same numbers as `rtx train`.

    At the end `model` has the weights of the best validation; if stopped, those it had. A cell that draws random
    numbers meanwhile draws them from the same generator as the training.

    Args:
        choice: what to train.

    Raises:
        ValueError: if there is no such plan.
    """

    def __init__(self, choice: Choice) -> None:
        super().__init__()
        self.choice, self.plan = choice, choice.plan()
        self.title, self.group = choice.row, choice.recipe
        self.task: Task | None = None  # task and model, once the data are read
        self.model: nn.Module | None = None
        self.steps = 0  # of the whole run
        self.probe: Batch | None = None
        self.losses: list[float] = []  # of each update's batch
        self.probes: list[tuple[int, float]] = []  # (updates so far, score of one validation batch)
        self.validations: list[tuple[int, float]] = []  # (updates so far, score of the validation split)
        self.looks: list[tuple[int, Look]] = []

    @property
    def told(self) -> str:
        """How far it is; empty before its first update."""
        if not self.losses:
            return ""
        return f"update {len(self.losses):,} of {self.steps:,}, loss {self.losses[-1]:.3f}"

    def told_at(self, update: int) -> str:
        """How good it was after so many updates, or at its end."""
        update = min(update, len(self.losses))
        loss = f", loss {self.losses[update - 1]:.3f}" if update else ""
        scores = [value for at, value in self.probes if at <= update]
        metric = f"; {self.task.metric} of one validation batch: {scores[-1]:.3f}" if scores and self.task else ""
        return f"After {update:,} updates{loss}{metric}."

    def facts(self) -> dict[str, str]:
        """A row of the table, with the command of the run and its log behind it."""
        changed = "".join(f"{key} {value}, " for key, value in self.choice.overrides.items())
        best = max if self.task and self.task.best == "max" else min
        log = [f"update {at:,}: validation {value:.4f}" for at, value in self.validations]
        return {
            "model": self.choice.row,
            "settings": f"{changed}seed {self.choice.seed}",
            "parameters": f"{sum(p.numel() for p in self.model.parameters()) if self.model else 0:,}",
            "updates": f"{len(self.losses):,}",
            "best validation": f"{best(score for _, score in self.validations):.3f}" if self.validations else "-",
            "more": "\n".join([self.choice.command(), *log, f"{self.state} {self.error}".strip()]),
        }

    def look(self) -> None:
        """Score the first validation batch and look at its first sequence. Of many looks some are kept."""
        if self.task is not None and self.model is not None and self.probe is not None:
            probe = where_it_is(self.model, self.probe)  # Lightning takes a model off a GPU when its training ends
            self.probes.append((len(self.losses), score(self.task, self.model, probe)))
            seen = look(self.task, self.model, probe)
            if bool(seen.values.isfinite().all()):
                self.looks.append((len(self.losses), seen))
            if len(self.looks) > LOOKS:  # delete the one whose neighbours are nearest
                del self.looks[min(range(1, LOOKS), key=lambda i: self.looks[i + 1][0] - self.looks[i - 1][0])]
        super().look()

    def work(self) -> None:
        """Train, and leave the notebook's random numbers as they were at the start."""
        from rtx.training.fit import fit  # Lightning takes seconds to import: only here
        from rtx.training.states import random_state, set_random_state

        before = random_state(torch.device("cpu"))
        try:
            with TemporaryDirectory(prefix="rtx-") as folder:
                fit(self.plan, self.choice.seed, Path(folder), callbacks=[_watcher(self)], enable_progress_bar=False)
        finally:
            set_random_state(before, torch.device("cpu"))


def _watcher(run: TrainingRun) -> Any:
    """A Lightning callback that writes down what happens to `run` and lets it breathe."""
    from lightning import LightningModule, Trainer
    from lightning.pytorch.callbacks import Callback

    class Watcher(Callback):
        def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
            run.task, run.model = pl_module.task, pl_module.model  # type: ignore[assignment]
            run.steps = int(trainer.num_training_batches) * (trainer.max_epochs or 0)
            with seeded(0):  # an iterator of a loader draws a number
                run.probe = next(iter(pl_module.val_dataloader()))
            run.look()

        def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
            run.losses.append(float(trainer.callback_metrics["train_loss"]))
            run.breathe()

        def on_validation_batch_start(self, *_: Any) -> None:
            run.breathe()

        def on_validation_end(self, trainer: Trainer, *_: Any) -> None:
            run.validations.append((len(run.losses), float(trainer.callback_metrics["validation"])))

    return Watcher()
