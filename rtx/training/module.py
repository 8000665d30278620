"""The thin layer between a task, a model and Lightning's Trainer."""

from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Any

import lightning
import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchmetrics import Metric

from rtx.nn.streaming import State, detach
from rtx.nn.validate import check_finite
from rtx.tasks.task import IGNORED, Batch, Sum, Task
from rtx.training import processes
from rtx.training.activations import activation_penalty, watch_activations
from rtx.training.averaging import Trigger, averaged
from rtx.training.batches import evaluation_batches, training_batches
from rtx.training.deep import (
    auxiliary_loss,
    auxiliary_losses,
    check_carries,
    check_slides,
    language_model,
    recurrent_backbone,
    start_epoch,
)
from rtx.training.optimizers import make_optimizer, make_schedule
from rtx.training.randomness import of_process
from rtx.training.settings import Settings
from rtx.training.states import Exploded, refuse_another, to_device


class Trainee(lightning.LightningModule):
    """A model in training: logs `train_loss` per step, and `validation` or `test`, the task's score, per epoch.

    Args:
        task: loss and score.
        model: (inputs, lengths) → predictions.
        settings: optimiser, schedule, reduction of the loss.
        seed: of the order of training.
        card: what is trained, in plain values; a checkpoint with another card is refused.
    """

    def __init__(
        self,
        task: Task,
        model: nn.Module,
        settings: Settings,
        seed: int = 0,
        card: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.task, self.model, self.settings, self.seed, self.card = task, model, settings, seed, card or {}
        self.validation, self.test = task.scorer(), task.scorer()
        self.commits: list[str | None] = []  # of the code that trained it, and goes on
        self.live_parameters = 0
        self.gradient_norm: Tensor | None = None  # of the last update, before clipping
        self.batches_done = 0  # of the epoch that a resumed run goes on with
        self.state: State | None = None  # where a text is carried from batch to batch
        self.trigger: Trigger | None = None
        self.observed: list[float] = []  # by the trigger
        self.penalty: Tensor | float = 0.0
        self.wrong = torch.zeros(())  # batches of an evaluation in which a prediction was NaN
        self.auxiliary = auxiliary_losses(model, settings.auxiliary) if settings.auxiliary else None
        if settings.slide:
            check_slides(model)  # now, not when it is tested
        if settings.carry:
            check_carries(model)  # now, before a run is begun that would be in the way
        if settings.ar or settings.tar:
            watch_activations(recurrent_backbone(model), self._penalise)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch, so weighted that what processes and accumulated batches add up to is the whole's.

        A "sum" is the sum over all; a "mean" is over all that the processes' batches score together, and the mean of
        the accumulated batches' means.

        Raises:
            ValueError: if the data hold NaN.
            Exploded: if the loss is no longer finite.
        """
        check_finite("inputs", batch.inputs)
        loss = self.loss(batch)
        everyones, count = processes.total(self.trainer, torch.stack([loss.total, loss.count.to(loss.total)]))
        if not torch.isfinite(everyones):
            raise Exploded(f"loss: became {(everyones / count).item()} at {self._place()}")
        self.log("train_loss", everyones / count, prog_bar=True, batch_size=len(batch.lengths))
        return self._objective(loss, count, batch_idx)

    def _objective(self, loss: Sum, count: Tensor, batch_idx: int) -> Tensor:
        """What is differentiated of a batch's loss, if so many are scored in the batches of all processes."""
        # Lightning takes the mean over the processes' gradients, and over `together` batches
        summed = (loss.total + self.penalty * loss.count) * self.trainer.world_size
        together = self.settings.accumulate
        if self.settings.reduction == "sum":
            return summed * together
        first = batch_idx - batch_idx % together
        return summed / count * (together / min(together, self.trainer.num_training_batches - first))

    def loss(self, batch: Batch) -> Sum:
        """The loss of a batch, with the auxiliary ones."""
        if self.auxiliary is None:
            return self.task.loss(self._predict(batch), batch)
        updates = ceil(self.trainer.num_training_batches / self.settings.accumulate) * self.settings.epochs
        progress = min(1.0, self.global_step / updates)  # of the whole plan: a run may stop early, and go on later
        count = (batch.targets != IGNORED).sum()
        return Sum(auxiliary_loss(self.model, self.auxiliary, batch, progress) * count, count)

    def _place(self) -> str:
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        norm = "none yet" if self.gradient_norm is None else f"{self.gradient_norm.item():.3g}"
        return f"step {self.global_step}, learning rate {rate:g}, last gradient norm {norm}"

    def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
        """Clip an update's gradient.

        Raises:
            Exploded: if it is not finite: the weights are still those of before.
        """
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters() if p.grad is not None])
        if not torch.isfinite(norm) and getattr(self.trainer.precision_plugin, "scaler", None) is None:
            raise Exploded(f"gradient norm: became {norm.item()} at {self._place()}")
        self.gradient_norm = norm
        if self.settings.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(self.parameters(), self.settings.clip, norm)

    def _penalise(self, raw: Tensor, dropped: Tensor) -> None:
        self.penalty = activation_penalty(raw, dropped, self.settings.ar, self.settings.tar)

    def _predict(self, batch: Batch) -> Tensor:
        if not self.settings.carry:
            return self.task.predict(self.model, batch)
        logits, state = language_model(self.model).read(batch.inputs, self.state)
        self.state = detach(state)
        return logits

    def on_train_start(self) -> None:
        """Every process begins with the same weights, but shall not drop the same units in its own batches."""
        if self.trigger:
            self.trigger.settle()
        if self.global_rank:
            lightning.seed_everything(of_process(self.seed, self.global_rank), verbose=False)
        if self.trainer.world_size > 1:
            self.test_dataloader()  # whether it has something for each of them is found now
        start_epoch(self.model, self.current_epoch)  # here, too: a resumed run may begin inside an epoch

    def on_train_epoch_start(self) -> None:
        """A text is read from its beginning."""
        self.state = None
        start_epoch(self.model, self.current_epoch)

    def on_validation_epoch_start(self) -> None:
        """A text is read from its beginning, and its score summed in float32, whatever the model computes in."""
        self.state, self.wrong = None, torch.zeros((), device=self.device)
        for metric in (self.validation, self.test):
            metric.set_dtype(torch.float32)

    on_test_epoch_start = on_validation_epoch_start

    def on_after_backward(self) -> None:
        """Count, once, the numbers that training moves."""
        if not self.live_parameters:
            self.live_parameters = sum(p.numel() for p in self.model.parameters() if p.grad is not None)

    def validation_step(self, batch: Batch) -> None:
        """Score a batch of the validation split."""
        with self.as_validated():
            self._score("validation", self.validation, batch)

    def as_validated(self) -> AbstractContextManager[None]:
        """The model with the weights that validation sees: averaged ones, once averaging has begun."""
        return averaged(self.trigger.optimizer) if self.trigger and self.trigger.fired else nullcontext()

    def on_validation_epoch_end(self) -> None:
        """Tell the trigger of averaged SGD how good the weights are.

        Raises:
            Exploded: if a prediction was NaN.
        """
        self._check_predictions("validation")
        if self.trigger:
            score = float(self.validation.compute())
            self.trigger.observe(score if self.task.best == "min" else -score)

    def test_step(self, batch: Batch) -> None:
        """Score a batch of the test split."""
        self._score("test", self.test, batch, sliding=self.settings.slide)

    def on_test_epoch_end(self) -> None:
        """A share of right answers does not show that one was NaN.

        Raises:
            Exploded: if so.
        """
        self._check_predictions("test")

    def _check_predictions(self, split: str) -> None:
        if processes.total(self.trainer, self.wrong):  # all processes find it at once
            raise Exploded(f"{split}: predictions became nan after step {self.global_step}, expected numbers")

    def _score(self, split: str, metric: Metric, batch: Batch, sliding: bool = False) -> None:
        predictions = language_model(self.model).slide(batch.inputs) if sliding else self._predict(batch)
        self.wrong += predictions.isnan().any()
        metric.update(*self.task.measured(predictions, batch))
        self.log(split, metric, on_epoch=True, prog_bar=True, batch_size=len(batch.lengths))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The recipe's optimiser, its rate annealed when validation stops improving, or every so many epochs."""
        chosen = self.settings
        optimizer = make_optimizer(chosen, self.parameters())
        if isinstance(optimizer, torch.optim.ASGD):
            self.trigger = Trigger(optimizer, chosen.patience, self.observed)
        schedule = make_schedule(chosen, optimizer, self.task.best)
        if schedule is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "validation"}}

    def train_dataloader(self) -> DataLoader[Batch]:
        """The training split, in the order of the settings, by seed and epoch."""
        return training_batches(self.task, self.settings, self.seed, self.batches_done)

    def val_dataloader(self) -> DataLoader[Batch]:
        """The validation split."""
        return self._evaluation("validation")

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test split."""
        return self._evaluation("test")

    def _evaluation(self, split: str) -> DataLoader[Batch]:
        return evaluation_batches(self.task, split, self.settings.carry, self.settings.limit_evaluation)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the card and what is carried from batch to batch."""
        checkpoint["rtx"] = {
            "card": self.card,
            "precision": self.trainer.precision,
            "commits": self.commits,
            "states": processes.of_all(to_device(self.state, "cpu")),
            "live": self.live_parameters,
            "observed": self.observed,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take up a run where it was left.

        Raises:
            CannotGoOn: see `refuse_another`.
        """
        refuse_another(checkpoint, self.card, self.trainer.precision, self.trainer.max_epochs)
        saved = checkpoint["rtx"]
        self.commits = [*(one for one in saved.get("commits", []) if one not in self.commits), *self.commits]
        self.live_parameters = saved["live"]
        # where it will be read: Lightning moves the model there only after this
        self.state = to_device(processes.mine(saved["states"]), self.trainer.strategy.root_device)
        self.observed[:] = saved["observed"]
