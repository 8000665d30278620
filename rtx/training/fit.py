"""Train one model of a recipe on one device, and find the weights with the best validation."""

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, Timer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.utilities import rank_zero_only

from rtx.checks import check_seed
from rtx.models import LanguageModel
from rtx.nn.validate import check_positive
from rtx.tasks import build, task_by_name
from rtx.training.files import file_name
from rtx.training.module import Trainee
from rtx.training.precision import float32_cudnn
from rtx.training.progress import Progress, Tell
from rtx.training.provenance import commit
from rtx.training.recipe import Plan
from rtx.training.states import Checkpoints, load_state
from rtx.training.survival import Survival, interruptible

log = logging.getLogger(__name__)
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # it informs about devices at each start

# warnings of Lightning about small data, folders and checkpoints inside an epoch, and of torch about its internals
NOISE = (
    "does not have many workers",
    "GPU available but not used",
    "is smaller than the logging interval",
    "your dataloader is not resumable",  # the order of the batches is: see `BatchOrder.skip`
    r"isinstance\(treespec, LeafSpec\)",
    "weights are not part of single contiguous chunk",  # weights with weight dropout are not
    "capturable=True can impair performance",  # it helps here: see `non_monotonic_asgd`
)


class Fit(NamedTuple):
    """A complete training. The model has the weights of the best epoch, counted from 1."""

    trainer: lightning.Trainer
    trainee: Trainee
    epoch: int
    validation: float
    seconds: float
    ended: str  # when the training ended; this names the file in the ledger


def run_folder(plan: Plan, seed: int, runs: Path = Path("runs")) -> Path:
    """Return the folder of a run's checkpoints and logs."""
    scale = "" if plan.scale == "full" else f"{plan.scale}-"
    return runs / plan.recipe.name / f"{file_name(f'{plan.row}-{scale}{plan.variant}')}-s{seed}"


def fit(
    plan: Plan,
    seed: int,
    folder: Path,
    epochs: int | None = None,
    resume: bool = False,
    every_seconds: float = 300,
    max_seconds: float | None = None,
    compiled: bool = False,
    callbacks: Sequence[Callback] = (),
    tell: Tell | None = None,
    **trainer: Any,
) -> Fit:
    """Train to the end. The arguments and the errors are those of `rtx.evidence.record.train`."""
    settings, resume = plan.settings, found_to_resume(folder, resume)
    epochs = settings.epochs if epochs is None else min(check_positive("epochs", epochs), settings.epochs)
    trainee = new_trainee(plan, seed)
    trainee.commit = commit()
    survival = Survival(folder, trainee.task.best, resume, every_seconds, max_seconds)
    timer = Timer(None if settings.seconds is None else timedelta(seconds=settings.seconds), verbose=False)
    ours: list[Callback] = [survival, timer]
    if settings.stop_after is not None or settings.stop_at is not None:
        patience = settings.stop_after or sys.maxsize  # with `stop_at` alone, patience is endless
        mode, enough = trainee.task.best, settings.stop_at
        ours.append(EarlyStopping("validation", patience=patience, mode=mode, stopping_threshold=enough))
    if tell:
        ours.append(Progress(plan, tell, timer))
    with quiet(), interruptible(folder), float32_cudnn():
        fitted = _lightning_trainer(folder, epochs, [*ours, *callbacks], **trainer)
        if compiled:
            _compile(trainee.model)
        try:
            fitted.fit(trainee, ckpt_path=survival.last if resume else None, weights_only=True)
        except OSError as error:
            raise OSError(f"{error}; {survival.kept()}") from error
    chosen = load_state(folder / "best.ckpt")
    trainee.model.load_state_dict(chosen["model"])
    return Fit(fitted, trainee, chosen["epoch"] + 1, chosen["score"], timer.time_elapsed("train"), survival.ended or "")


def _lightning_trainer(
    folder: Path, epochs: int, callbacks: list[Callback], precision: str = "32-true", **more: Any
) -> lightning.Trainer:
    folder = folder.absolute()  # otherwise the loggers would take a "~" in it for the home folder
    curves = TensorBoardLogger(folder, name="", version="tensorboard", default_hp_metric=False)
    # A run is one process that writes its own logs, whatever number SLURM or torchrun gave it. Lightning must not save
    # and requeue a SLURM job either, because `Survival` saves.
    rank_zero_only.rank = 0  # type: ignore[attr-defined]
    more.setdefault("accelerator", "cuda" if torch.cuda.is_available() else "cpu")  # others were never tried
    trainer = lightning.Trainer(
        max_epochs=epochs,
        devices=1,
        callbacks=callbacks,
        logger=[CSVLogger(folder, name="log"), curves],
        enable_checkpointing=False,  # `Survival` writes the checkpoints
        plugins=[Checkpoints(), LightningEnvironment()],
        num_sanity_val_steps=0,
        log_every_n_steps=50,
        enable_model_summary=False,
        precision=precision,  # type: ignore[arg-type]
        **more,
    )
    if trainer.precision != precision:  # Lightning only warns, and the ledger would name the wrong precision
        device = trainer.strategy.root_device.type
        raise ValueError(f"precision: {precision} does not exist on this {device}; the nearest is {trainer.precision}")
    return trainer


def has_checkpoint(folder: Path) -> bool:
    """Return whether a run in this folder can be resumed."""
    return (folder / "last.ckpt").exists()


def found_to_resume(folder: Path, resume: bool) -> bool:
    """Return whether to resume. A new run in the folder of an unfinished one is refused."""
    found = has_checkpoint(folder)
    if resume and not found:
        log.warning("there is no checkpoint in %s yet: the run starts from its beginning", folder)
    if not resume and found and not (folder / "best.safetensors").exists():
        raise ValueError(f"{folder} holds an unfinished run: continue it with --resume, or remove its last.ckpt")
    return resume and found


def new_trainee(plan: Plan, seed: int) -> Trainee:
    """Return the model before training. Set the seed of all generators."""
    lightning.seed_everything(check_seed("seed", seed), workers=True, verbose=False)
    task = task_by_name(plan.task, **plan.task_arguments)
    model = build(task, plan.model, **plan.hyperparameters)
    card: dict[str, Any] = {"recipe": plan.recipe.name, "row": plan.row, "variant": plan.variant, "scale": plan.scale}
    card |= {"data_sha256": task.sha256(), "task": plan.task} | plan.task_arguments
    card |= {"model": plan.model} | plan.hyperparameters
    return Trainee(task, model, plan.settings, seed, card | asdict(plan.settings))


def _compile(model: torch.nn.Module) -> None:
    """Compile a model in place at its first call. Without a working compiler, torch logs a warning and goes on."""
    torch._dynamo.config.suppress_errors = True
    model.compile()
    if isinstance(model, LanguageModel):  # a stateful run calls `read` instead of the model
        model.read = torch.compile(model.read)  # type: ignore[method-assign]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence advice on workers and hardware, which does not apply to small data in memory."""
    with warnings.catch_warnings():
        for message in NOISE:
            warnings.filterwarnings("ignore", f".*{message}.*")
        yield
