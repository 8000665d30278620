"""The thin layer between a task, a model and Lightning's Trainer."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import lightning
import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchmetrics import Metric

from rtx.models import CausalModel, LanguageModel
from rtx.nn.streaming import State, detach, map_state
from rtx.nn.validate import check_finite
from rtx.tasks.loader import loader
from rtx.tasks.task import IGNORED, SPLITS, Batch, Sum, Task
from rtx.training.auxiliary_losses import AuxiliaryLosses, activation_penalty
from rtx.training.evaluate import evaluation_batches
from rtx.training.optimizers import Trigger, averaged, make_optimizer, make_schedule
from rtx.training.settings import Settings
from rtx.training.states import Exploded, refuse_another


class Trainee(lightning.LightningModule):
    """A model in training. It logs `train_loss` at each step, and the task's score as `validation` or `test`.

    `seed` decides the order of training. `card` says what is trained; a checkpoint with another card is refused.
    """

    def __init__(
        self, task: Task, model: nn.Module, settings: Settings, seed: int = 0, card: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        check_model(model, settings)
        if settings.carry and any(getattr(task.split(part), "apart", False) for part in SPLITS):
            raise ValueError("carry: expected one text in each split, because a state would cross from text to text")
        self.task, self.model, self.settings, self.seed, self.card = task, model, settings, seed, card or {}
        self.validation, self.test = task.scorer(), task.scorer()
        self.commit: str | None = None  # of the code
        self.earlier_commits: list[str | None] = []  # of the parts before this one, if the run was resumed
        self.live_parameters = 0
        self.gradient_norm: Tensor | None = None  # of the last update, before clipping
        self.batches_done = 0  # of the epoch that a resumed run continues
        self.state: State | None = None  # of a text that is read from batch to batch
        self.trigger: Trigger | None = None
        self.observed: list[float] = []  # the trigger's validation losses
        self.penalty: Tensor | float = 0.0
        language_model = cast(LanguageModel, model)
        self.auxiliary = AuxiliaryLosses(language_model, settings.auxiliary) if settings.auxiliary else None
        if settings.ar or settings.tar:
            model.get_submodule("backbone.dropout").register_forward_hook(self._penalise)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the loss of a batch: the sum over all frames, or the mean over them."""
        check_finite("inputs", batch.inputs)
        if self.auxiliary is None:
            loss = self.task.loss(self._predict(batch), batch)
        else:
            loss = self._auxiliary_loss(self.auxiliary, batch)
        mean = loss.total.detach() / loss.count
        if not torch.isfinite(mean):
            raise Exploded(f"loss: became {mean.item()} at {self._place()}")
        self.log("train_loss", mean, prog_bar=True, batch_size=len(batch.lengths))
        summed = loss.total + self.penalty * loss.count
        return summed if self.settings.reduction == "sum" else summed / loss.count

    def _auxiliary_loss(self, losses: AuxiliaryLosses, batch: Batch) -> Sum:
        updates = self.trainer.num_training_batches * self.settings.epochs
        progress = min(1.0, self.global_step / updates)  # of the plan: this run may stop early and continue later
        count = (batch.targets != IGNORED).sum()
        return Sum(losses.of_batch(cast(LanguageModel, self.model), batch, progress) * count, count)

    def _place(self) -> str:
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        norm = "none yet" if self.gradient_norm is None else f"{self.gradient_norm.item():.3g}"
        return f"step {self.global_step}, learning rate {rate:g}, last gradient norm {norm}"

    def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
        """Clip the gradient of an update. If it is not finite, raise `Exploded` before the weights change."""
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters() if p.grad is not None])
        # a gradient scaler (float16) skips such an update itself
        if not torch.isfinite(norm) and getattr(self.trainer.precision_plugin, "scaler", None) is None:
            raise Exploded(f"gradient norm: became {norm.item()} at {self._place()}")
        self.gradient_norm = norm
        if self.settings.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(self.parameters(), self.settings.clip, norm)

    def _penalise(self, dropout: nn.Module, raw: tuple[Tensor], dropped: Tensor) -> None:
        """Take the last layer's output before and after its dropout, in each training step."""
        if dropout.training:
            self.penalty = activation_penalty(raw[0], dropped, self.settings.ar, self.settings.tar)

    def _predict(self, batch: Batch) -> Tensor:
        if not self.settings.carry:
            return self.task.predict(self.model, batch)
        logits, state = cast(LanguageModel, self.model).read(batch.inputs, self.state)
        self.state = detach(state)
        return logits

    def on_train_start(self) -> None:
        """Tell the model its epoch. A resumed run may begin inside an epoch."""
        for module in self.model.modules():
            if isinstance(module, CausalModel):
                module.start_epoch(self.current_epoch)

    def on_train_epoch_start(self) -> None:
        """Read a text from its beginning."""
        self.state = None
        self.on_train_start()

    def on_validation_epoch_start(self) -> None:
        """Read a text from its beginning, and sum its score in float32, also if the model computes in bfloat16."""
        self.state = None
        for module in (*self.validation.modules(), *self.test.modules()):
            if isinstance(module, Metric):  # a metric such as the perplexity has another one inside
                module.set_dtype(torch.float32)

    on_test_epoch_start = on_validation_epoch_start

    def on_after_backward(self) -> None:
        """Count the parameters that have a gradient, once."""
        if not self.live_parameters:
            self.live_parameters = sum(p.numel() for p in self.model.parameters() if p.grad is not None)

    def validation_step(self, batch: Batch) -> None:
        """Score a batch of the validation split."""
        with self.as_validated():
            self._score("validation", self.validation, batch)

    def as_validated(self) -> AbstractContextManager[None]:
        """Give the model the weights that are validated: the averaged weights, once averaging has begun."""
        return averaged(self.trigger.optimizer) if self.trigger and self.trigger.fired else nullcontext()

    def on_validation_epoch_end(self) -> None:
        """Tell the trigger of averaged SGD how good the weights are."""
        if self.trigger:
            score = float(self.validation.compute())
            self.trigger.observe(score if self.task.best == "min" else -score)

    def test_step(self, batch: Batch) -> None:
        """Score a batch of the test split."""
        self._score("test", self.test, batch, sliding=self.settings.slide)

    def _score(self, split: str, metric: Metric, batch: Batch, sliding: bool = False) -> None:
        predictions = cast(LanguageModel, self.model).slide(batch.inputs) if sliding else self._predict(batch)
        if predictions.isnan().any():  # in an accuracy NaN would only look like a wrong answer
            raise Exploded(f"{split}: predictions became nan after step {self.global_step}, expected numbers")
        metric.update(*self.task.measured(predictions, batch))
        self.log(split, metric, on_epoch=True, prog_bar=True, batch_size=len(batch.lengths))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Return the optimiser of the settings, and its schedule if there is one."""
        optimizer = make_optimizer(self.settings, self.parameters())
        if isinstance(optimizer, torch.optim.ASGD):
            self.trigger = Trigger(optimizer, self.settings.patience, self.observed)
        if (schedule := make_schedule(self.settings, optimizer, self.task.best)) is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "validation"}}

    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the training split, in the order of the settings, by seed and epoch."""
        how = self.settings
        batches = loader(self.task, "train", how.batch_size, self.seed, how.batching, how.limit)
        batches.batch_sampler.skip(self.batches_done)  # type: ignore[union-attr]
        return batches

    def val_dataloader(self) -> DataLoader[Batch]:
        """Return the validation split."""
        return evaluation_batches(self.task, "validation", self.settings.carry, self.settings.limit_evaluation)

    def test_dataloader(self) -> DataLoader[Batch]:
        """Return the test split."""
        return evaluation_batches(self.task, "test", self.settings.carry, self.settings.limit_evaluation)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the card and the state that is carried from batch to batch."""
        checkpoint["rtx"] = {
            "card": self.card,
            "precision": self.trainer.precision,
            "commits": [*self.earlier_commits, self.commit],
            # a list, as in older checkpoints
            "states": [map_state(Tensor.cpu, self.state)],
            "live": self.live_parameters,
            "observed": self.observed,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Continue a run, if the checkpoint is of the same run."""
        refuse_another(checkpoint, self.card, self.trainer.precision, self.trainer.max_epochs)
        saved = checkpoint["rtx"]
        if self.commit and any(str(one).endswith("-dirty") for one in saved["commits"]):
            self.commit = f"{self.commit.removesuffix('-dirty')}-dirty"  # a part of the run was not made by a commit
        self.earlier_commits = [one for one in saved["commits"] if one != self.commit]
        self.live_parameters = saved["live"]
        device = self.trainer.strategy.root_device  # Lightning moves the model to this device only later
        self.state = map_state(lambda tensor: tensor.to(device), saved["states"][0])
        self.observed[:] = saved["observed"]


def check_model(model: nn.Module, settings: Settings) -> None:
    """Check that a model can be trained with the settings `auxiliary`, `slide`, `carry`, `ar` and `tar`."""
    backbone = model.backbone if isinstance(model, LanguageModel) else None
    offered = () if backbone is None else backbone.auxiliary_losses
    for name, asked, able, example in (
        ("auxiliary", settings.auxiliary, "layers" in offered, "character-transformer"),
        ("slide", settings.slide, backbone and backbone.separate_segments, "character-transformer"),
        ("carry", settings.carry, backbone and backbone.stateful, "lstm"),
        ("ar, tar", settings.ar or settings.tar, "activations" in offered, "awd-lstm"),
    ):
        if asked and not able:
            given = type(model if backbone is None else backbone).__name__
            raise ValueError(f"{name}: expected a language model such as {example}, got {given}")
