"""Train one model of a recipe, choose its epoch by validation, test it once, and write it to the ledger."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger

from rtx.nn.mode import evaluating
from rtx.tasks import build, task_by_name
from rtx.training import ledger
from rtx.training.checkpoint import save_checkpoint
from rtx.training.module import Trainee
from rtx.training.recipe import Plan

# what Lightning says of small data, of its own folders, and of torch's internals
NOISE = (
    "does not have many workers",
    "GPU available but not used",
    "Checkpoint directory .* exists and is not empty",
    "is smaller than the logging interval",
    r"isinstance\(treespec, LeafSpec\)",
)


def train(
    plan: Plan,
    seed: int = 0,
    epochs: int | None = None,
    resume: bool = False,
    command: str = "",
    runs: Path = Path("runs"),
    results: Path = ledger.LEDGER,
    **trainer: Any,
) -> Path:
    """Run a plan to its end; return the ledger's new file.

    Args:
        plan: model, hyper-parameters and settings.
        seed: of weights, order and dropout.
        epochs: stop after so many, if fewer than the plan's; the ledger says so.
        resume: go on from the last checkpoint of the same run.
        command: how to run it again, for the ledger.
        runs: folder for checkpoints and the log of metrics.
        results: the ledger's folder.
        trainer: further arguments of `lightning.Trainer`, such as `devices` and `precision`.

    Raises:
        ValueError: if there is nothing to resume, an unfinished run is in the way, or its checkpoint is another
            plan's.
    """
    folder = run_folder(plan, seed, runs)
    last = _last_checkpoint(folder, resume)
    trainee = _trainee(plan, seed)
    with _quiet():
        fitted = _fit(trainee, folder, last, min(epochs or plan.settings.epochs, plan.settings.epochs), **trainer)
        chosen = torch.load(_best(fitted).best_model_path, weights_only=True)
        trainee.load_state_dict(chosen["state_dict"])
        test, details = _test(fitted, trainee)
    result = _result(plan, trainee, fitted, seed, chosen["epoch"] + 1, test, details, command)
    save_checkpoint(
        folder / "best.safetensors",
        trainee.model,
        plan.task,
        plan.model,
        plan.hyperparameters,
        **{
            key: getattr(result, key)
            for key in ("recipe", "variant", "scale", "seed", "epoch", "validation", "test", "commit")
        },
    )
    return ledger.write_result(result, results)


def run_folder(plan: Plan, seed: int, runs: Path = Path("runs")) -> Path:
    """Where a run keeps its checkpoints and logs."""
    scale = "" if plan.scale == "full" else f"{plan.scale}-"
    return runs / plan.recipe.name / f"{plan.row}-{scale}{plan.variant}-s{seed}"


def _test(fitted: lightning.Trainer, trainee: Trainee) -> tuple[float, dict[str, float]]:
    """The test score, and whatever else the task measures of what the model writes."""
    if trainee.task.examine is None:
        return fitted.test(trainee, verbose=False)[0]["test"], {}
    with torch.no_grad(), evaluating(trainee.model):
        details = trainee.task.examine(trainee.model, "test", trainee.settings.limit_evaluation)
    return next(iter(details.values())), details


def _result(
    plan: Plan,
    trainee: Trainee,
    fitted: lightning.Trainer,
    seed: int,
    epoch: int,
    test: float,
    details: dict[str, float],
    command: str,
) -> ledger.Result:
    timer = next(c for c in fitted.callbacks if isinstance(c, Timer))  # type: ignore[attr-defined]
    done, planned = fitted.current_epoch, plan.settings.epochs
    # an early stop is the recipe's own end; fewer epochs than it asks for are not
    cut = f"{done} of {planned} epochs" if done == fitted.max_epochs and done < planned else None
    return ledger.Result(
        recipe=plan.recipe.name,
        model=plan.row,
        variant=plan.variant,
        scale=plan.scale,
        data=trainee.task.name,
        data_sha256=trainee.task.sha256(),
        metric=trainee.task.metric,
        seed=seed,
        epoch=epoch,
        validation=float(_best(fitted).best_model_score),  # type: ignore[arg-type]
        test=test,
        parameters=trainee.live_parameters,
        seconds=round(timer.time_elapsed("train"), 1),
        hardware=ledger.hardware(fitted.strategy.root_device),
        versions=ledger.versions(),
        commit=ledger.commit(),
        command=command,
        budget=cut,
        details=details,
    )


def _best(fitted: lightning.Trainer) -> ModelCheckpoint:
    return next(c for c in fitted.checkpoint_callbacks if isinstance(c, ModelCheckpoint) and c.monitor)


def _last_checkpoint(folder: Path, resume: bool) -> Path | None:
    last = folder / "last.ckpt"
    if resume and not last.exists():
        raise ValueError(f"resume: there is no {last}; without --resume the run starts afresh")
    if not resume and last.exists() and not (folder / "best.safetensors").exists():
        raise ValueError(f"{folder} holds an unfinished run: go on with --resume, or remove the folder")
    return last if resume else None


def _trainee(plan: Plan, seed: int) -> Trainee:
    lightning.seed_everything(seed, workers=True, verbose=False)
    task = task_by_name(plan.task)
    model = build(task, plan.model, **plan.hyperparameters)
    card = {"recipe": plan.recipe.name, "row": plan.row, "variant": plan.variant, "scale": plan.scale}
    card |= {"model": plan.model, **plan.hyperparameters}
    return Trainee(task, model, plan.settings, seed, card)


def _fit(
    trainee: Trainee,
    folder: Path,
    last: Path | None,
    epochs: int,
    callbacks: Sequence[Callback] = (),
    **trainer: Any,
) -> lightning.Trainer:
    settings, best = trainee.settings, trainee.task.best
    ours: list[Callback] = [
        ModelCheckpoint(folder, "best", monitor="validation", mode=best, enable_version_counter=False),
        # after the other, whose state it holds; `save_last` there would write only when an epoch is the best so far
        ModelCheckpoint(folder, "last", enable_version_counter=False),
        Timer(interval="epoch", verbose=False),
    ]
    if settings.stop_after is not None:
        ours.append(EarlyStopping("validation", patience=settings.stop_after, mode=best))
    fitted = lightning.Trainer(
        max_epochs=epochs,
        accumulate_grad_batches=settings.accumulate,
        use_distributed_sampler=False,  # our own knows the processes
        gradient_clip_val=settings.clip,  # Lightning clips after backward(), where clipping acts
        callbacks=[*ours, *callbacks],
        logger=CSVLogger(folder, name="log"),
        num_sanity_val_steps=0,
        log_every_n_steps=50,
        enable_model_summary=False,
        **trainer,
    )
    fitted.fit(trainee, ckpt_path=last, weights_only=True)
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Lightning's advice on workers and hardware, which here is noise: small data sit in memory."""
    logger = logging.getLogger("lightning.pytorch")
    before = logger.level
    logger.setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for message in NOISE:
            warnings.filterwarnings("ignore", f".*{message}.*")
        yield
    logger.setLevel(before)
