"""Train one model of a recipe, on one device or many, and find the weights that validation chose."""

import logging
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import lightning
from lightning.pytorch.callbacks import Callback, EarlyStopping, Timer
from lightning.pytorch.plugins.environments import SLURMEnvironment
from lightning.pytorch.utilities.exceptions import SIGTERMException

from rtx.nn.validate import check_positive
from rtx.tasks import build, task_by_name
from rtx.training.compiling import compile_model
from rtx.training.files import file_name
from rtx.training.module import Trainee
from rtx.training.precision import check_taken, parse_precision
from rtx.training.progress import loggers, progress_bar
from rtx.training.provenance import commit
from rtx.training.randomness import check_seed
from rtx.training.recipe import Plan
from rtx.training.states import CannotGoOn, Checkpoints, load_state, previous
from rtx.training.survival import Stopped, Survival

log = logging.getLogger(__name__)

# what Lightning says of small data, of its own folders, of checkpoints inside an epoch, and of torch's internals; and
# what torch says of averaged SGD on a GPU
NOISE = (
    "does not have many workers",
    "GPU available but not used",
    "is smaller than the logging interval",
    "your dataloader is not resumable",  # its order is: see `BatchOrder.skip`
    r"isinstance\(treespec, LeafSpec\)",
    "weights are not part of single contiguous chunk",  # those that weight dropout has hidden are not
    "capturable=True can impair performance",  # it does not here: see `Trigger.settle`
)


class Fit(NamedTuple):
    """A run that came to its end, its model with the weights of the best epoch, counted from 1."""

    trainer: lightning.Trainer
    trainee: Trainee
    epoch: int
    validation: float
    seconds: float
    ended: str


def run_folder(plan: Plan, seed: int, runs: Path = Path("runs")) -> Path:
    """Where a run keeps its checkpoints and logs."""
    scale = "" if plan.scale == "full" else f"{plan.scale}-"
    return runs / plan.recipe.name / f"{file_name(f'{plan.row}-{scale}{plan.variant}')}-s{seed}"


def fit(
    plan: Plan,
    seed: int,
    folder: Path,
    epochs: int | None = None,
    resume: bool = False,
    every_seconds: float = 300,
    every_steps: int | None = None,
    max_seconds: float | None = None,
    compiled: bool = False,
    callbacks: Sequence[Callback] = (),
    **trainer: Any,
) -> Fit:
    """Train to the end; `rtx.evidence.record.train` says what the arguments are.

    Raises:
        ValueError: if `epochs` is below 1; if an unfinished run is in the way, no checkpoint of it is whole, or it is
            another plan's; if there is no such precision here.
        Stopped: if the run was stopped, and can be resumed.
        OSError: if a file cannot be read or written, as on a full disk; the last checkpoint is whole.
    """
    if epochs is not None:
        check_positive("epochs", epochs)
    settings, resume = plan.settings, found_to_resume(folder, resume)
    survival = Survival(folder, "min", resume, every_seconds, every_steps, max_seconds)
    trainee = new_trainee(plan, seed)
    survival.mode, trainee.commits = trainee.task.best, [commit()]
    timer = Timer(None if settings.seconds is None else timedelta(seconds=settings.seconds), verbose=False)
    epochs = settings.epochs if epochs is None else min(epochs, settings.epochs)
    ours = [survival, timer, *_early_stopping(trainee)]
    with quiet():
        fitted = _lightning_trainer(folder, epochs, settings.accumulate, [*ours, *callbacks], **trainer)
        if compiled:
            compile_model(trainee.model, fitted.strategy.root_device)
        try:
            with interruptible(folder):
                fitted.fit(trainee, ckpt_path=survival.last if resume else None, weights_only=True)
            survival.stop_late()
        except OSError as error:
            raise OSError(f"{error}; {survival.kept()}") from error
    try:
        chosen = load_state(folder / "best.ckpt")
    except ValueError as error:
        raise CannotGoOn(f"{error}; remove {folder} and train again without --resume") from error
    trainee.model.load_state_dict(chosen["model"])
    ended = survival.ended or ""
    return Fit(fitted, trainee, chosen["epoch"] + 1, chosen["score"], timer.time_elapsed("train"), ended)


def _lightning_trainer(
    folder: Path, epochs: int, accumulate: int, callbacks: list[Callback], precision: str = "32-true", **more: Any
) -> lightning.Trainer:
    if more.get("enable_progress_bar", True):
        callbacks = [*callbacks, progress_bar()]
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accumulate_grad_batches=accumulate,
        use_distributed_sampler=False,  # our own knows the processes
        callbacks=callbacks,
        logger=loggers(folder),
        enable_checkpointing=False,  # `Survival` does
        plugins=[Checkpoints(), *_cluster()],
        num_sanity_val_steps=0,
        log_every_n_steps=50,
        enable_model_summary=False,
        precision=(precision := parse_precision(precision)),  # type: ignore[arg-type]
        **more,
    )
    check_taken(precision, trainer.precision, trainer.strategy.root_device.type)
    return trainer


def has_checkpoint(folder: Path) -> bool:
    """Whether a run was begun in a folder, and can go on."""
    last = folder / "last.ckpt"
    return last.exists() or previous(last).exists()


def found_to_resume(folder: Path, resume: bool) -> bool:
    """Whether there is a checkpoint to go on from, if one shall.

    Raises:
        ValueError: if one shall not, and an unfinished run would be lost.
    """
    found = has_checkpoint(folder)
    if resume and not found:
        log.warning("there is no checkpoint in %s yet: the run starts from its beginning", folder)
    if not resume and found and not (folder / "best.safetensors").exists():
        raise ValueError(f"{folder} holds an unfinished run: go on with --resume, or remove the folder")
    return resume and found


def new_trainee(plan: Plan, seed: int) -> Trainee:
    """The model as it is before training.

    Raises:
        ValueError: if the seed is none, or the model cannot be built.
    """
    lightning.seed_everything(check_seed("seed", seed), workers=True, verbose=False)
    task = task_by_name(plan.task, **plan.task_arguments)
    try:
        model = build(task, plan.model, **plan.hyperparameters)
    except RuntimeError as error:
        if "allocate" not in str(error):
            raise
        raise ValueError(f"{plan.model}: cannot be built ({str(error).splitlines()[0]})") from error
    card: dict[str, Any] = {"recipe": plan.recipe.name, "row": plan.row, "variant": plan.variant, "scale": plan.scale}
    card |= {
        "data_sha256": task.sha256(),
        "task": plan.task,
        **plan.task_arguments,
        "model": plan.model,
        **plan.hyperparameters,
    }
    return Trainee(task, model, plan.settings, seed, card | asdict(plan.settings))


def _early_stopping(trainee: Trainee) -> list[Callback]:
    settings = trainee.settings
    if settings.stop_after is None and settings.stop_at is None:
        return []
    patience = settings.stop_after or sys.maxsize  # never, if it is to stop only where validation is good enough
    mode, enough = trainee.task.best, settings.stop_at
    return [EarlyStopping("validation", patience=patience, mode=mode, stopping_threshold=enough)]


def _cluster() -> list[SLURMEnvironment]:
    """SLURM, without Lightning's own way to save and requeue, which knows nothing of ours."""
    return [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []


@contextmanager
def interruptible(folder: Path) -> Iterator[None]:
    """Stop at Ctrl-C or SIGTERM where `Survival` does not listen.

    Lightning would exit with 1, deaf to a second Ctrl-C, and after SIGTERM with 0, as if all were done.

    Raises:
        Stopped: at Ctrl-C, or SIGTERM.
    """
    heard = signal.getsignal(signal.SIGINT)
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as end:
        number = signal.SIGTERM if isinstance(end, SIGTERMException) else signal.SIGINT
        typed = isinstance(end, KeyboardInterrupt) or isinstance(end.__context__, KeyboardInterrupt)
        if number == signal.SIGINT and not typed:
            raise
        signal.signal(signal.SIGINT, heard)
        where = f"stopped outside of training; what there is of the run is in {folder}"
        raise Stopped(where, 128 + number) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Without Lightning's advice on workers and hardware, which here is noise: small data sit in memory."""
    logger = logging.getLogger("lightning.pytorch")
    before = logger.level
    logger.setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for message in NOISE:
            warnings.filterwarnings("ignore", f".*{message}.*")
        try:
            yield
        finally:
            logger.setLevel(before)
