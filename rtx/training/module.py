"""The thin layer between a task, a model and Lightning's Trainer."""

from typing import Any

import lightning
import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchmetrics import Metric

from rtx.nn.state import State, detach
from rtx.nn.validate import check_finite
from rtx.tasks.loader import loader
from rtx.tasks.task import Batch, Task
from rtx.training.recipe import Settings

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


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
        self.live_parameters = 0
        self.state: State | None = None  # where a text is carried from batch to batch

    def training_step(self, batch: Batch) -> Tensor:
        """One update's loss.

        Raises:
            ValueError: if the data hold NaN, or the loss is no longer finite.
        """
        check_finite("inputs", batch.inputs)
        loss = self.task.loss(self._predict(batch), batch)
        mean = loss.total / loss.count
        if not torch.isfinite(mean):
            rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
            raise ValueError(f"loss: became {mean.item()} at step {self.global_step}, learning rate {rate:g}")
        self.log("train_loss", mean.detach(), prog_bar=True, batch_size=len(batch.lengths))
        return loss.total if self.settings.reduction == "sum" else mean

    def _predict(self, batch: Batch) -> Tensor:
        if not self.settings.carry:
            return self.task.predict(self.model, batch)
        logits, state = self.model.read(batch.inputs, self.state)  # type: ignore[operator]
        self.state = detach(state)
        return logits

    def on_train_epoch_start(self) -> None:
        """A text is read from its beginning."""
        self.state = None

    on_validation_epoch_start = on_test_epoch_start = on_train_epoch_start

    def on_after_backward(self) -> None:
        """Count, once, the numbers that training moves."""
        if not self.live_parameters:
            self.live_parameters = sum(p.numel() for p in self.model.parameters() if p.grad is not None)

    def validation_step(self, batch: Batch) -> None:
        """Score a batch of the validation split."""
        self._score("validation", self.validation, batch)

    def test_step(self, batch: Batch) -> None:
        """Score a batch of the test split."""
        self._score("test", self.test, batch)

    def _score(self, split: str, metric: Metric, batch: Batch) -> None:
        metric.update(*self.task.measured(self._predict(batch), batch))
        self.log(split, metric, on_epoch=True, prog_bar=True, batch_size=len(batch.lengths))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The recipe's optimiser, its rate annealed when validation stops improving, or every so many epochs."""
        chosen = self.settings
        optimizer = OPTIMIZERS[chosen.optimizer](self.model.parameters(), lr=chosen.learning_rate)
        if chosen.anneal is None:
            return optimizer
        if chosen.anneal_every is not None:
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, chosen.anneal_every, chosen.anneal)]
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, self.task.best, factor=chosen.anneal, patience=chosen.patience
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "validation"}}

    def train_dataloader(self) -> DataLoader[Batch]:
        """The training split, in the order of the settings, by seed and epoch."""
        chosen = self.settings
        return loader(self.task, "train", chosen.batch_size, self.seed, chosen.order, chosen.limit)

    def val_dataloader(self) -> DataLoader[Batch]:
        """The validation split in its order."""
        return self._evaluation("validation")

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test split in its order."""
        return self._evaluation("test")

    def _evaluation(self, split: str) -> DataLoader[Batch]:
        chosen = self.settings
        order = "columns" if chosen.carry else None
        return loader(self.task, split, 1 if chosen.carry else chosen.batch_size, 0, order, chosen.limit_evaluation)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the card, and the random state, so that dropout goes on where it was."""
        checkpoint["rtx"] = {"card": self.card, "random": torch.get_rng_state(), "live": self.live_parameters}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take up a run where it was left.

        Raises:
            ValueError: if it was another model's, or its hyper-parameters were others.
        """
        found = checkpoint.get("rtx", {}).get("card")
        if found != self.card:
            raise ValueError(f"resume: expected the checkpoint of {self.card}, got one of {found}")
        torch.set_rng_state(checkpoint["rtx"]["random"])
        self.live_parameters = checkpoint["rtx"]["live"]
