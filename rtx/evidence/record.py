"""Train one model of a recipe, choose its epoch by validation, test it once, and write the run to the ledger."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rtx.evidence import ledger
from rtx.nn.mode import evaluating
from rtx.tasks.task import Scores
from rtx.training.checkpoint import save_checkpoint
from rtx.training.evaluate import examination
from rtx.training.fit import Fit, fit, interruptible, quiet, run_folder
from rtx.training.lock import lock_folder
from rtx.training.module import Trainee
from rtx.training.precision import float32_cudnn
from rtx.training.provenance import hardware, in_commit, versions
from rtx.training.recipe import Plan
from rtx.training.states import Exploded

FACTS = ("recipe", "variant", "scale", "seed", "epoch", "validation", "test", "metric", "data", "data_sha256", "commit")


def train(
    plan: Plan,
    seed: int = 0,
    epochs: int | None = None,
    resume: bool = False,
    command: str = "",
    runs: Path = Path("runs"),
    results: Path = ledger.LEDGER,
    chosen_from: Mapping[str, float | None] | None = None,
    **training: Any,
) -> Path:
    """Carry out a plan and return the ledger's new file.

    Args:
        epochs: stop after so many epochs, if the plan has more; the ledger records this as the budget.
        resume: continue from the last checkpoint of the same run, if there is one.
        command: the command that repeats the run, for the ledger.
        runs: folder for checkpoints and logs.
        chosen_from: what a sweep tried, if a sweep chose the settings; see `ledger.Result`.
        training: `every_seconds` between checkpoints inside an epoch; `max_seconds`, after which the run saves and
            stops; `compiled` for `torch.compile`; `tell`, which gets the events of `rtx.training.progress`; and
            arguments of `lightning.Trainer`, such as `accelerator` and `precision`.

    Raises:
        Stopped: if a signal or `max_seconds` stopped the run; it can be resumed.
        Exploded: if the loss, a gradient, a weight or a score is not finite.
        ValueError: if the folder has an unfinished run and `resume` is False.
        OSError: if a checkpoint cannot be written.
    """
    folder = run_folder(plan, seed, runs)
    with lock_folder(folder):
        done = fit(plan, seed, folder, epochs, resume, **training)
        test, details = _test(done, folder)
        result = replace(_result(plan, done, seed, test, details, command), chosen_from=dict(chosen_from or {}))
        path = ledger.write_result(result, results, done.ended)
        _save(folder / "best.safetensors", plan, done.trainee, result)  # last: this file marks the run as finished
    return path


def _test(done: Fit, folder: Path) -> tuple[float, Scores]:
    """Return the test score, and the scores of what the model writes if the task has such scores."""
    trainer, trainee, details = done.trainer, done.trainee, Scores()
    with quiet(), interruptible(folder), float32_cudnn():
        if examine := examination(trainee.task, trainee.settings.carry):
            # on the device and in the precision of the training
            model = trainee.to(trainer.strategy.root_device).model
            with torch.no_grad(), evaluating(model), trainer.precision_plugin.forward_context():
                details = examine(model, "test", trainee.settings.limit_evaluation)
            trainee.cpu()
            test = float(next(iter(details.values())))
        else:
            test = trainer.test(trainee, verbose=False)[0]["test"]
    if not math.isfinite(test):
        raise Exploded(f"test: became {test} with the weights of epoch {done.epoch}, expected a finite number")
    return test, details


def _result(plan: Plan, run: Fit, seed: int, test: float, details: Scores, command: str) -> ledger.Result:
    trainer, task, recipe, commit = run.trainer, run.trainee.task, plan.recipe, run.trainee.commit
    in_it = in_commit(commit, f"training/recipes/{recipe.name}.toml", recipe.text)
    file = {"sha256": hashlib.sha256(recipe.text.encode()).hexdigest(), "in_commit": in_it}
    return ledger.Result(
        recipe=recipe.name,
        model=plan.row,
        variant=plan.variant,
        scale=plan.scale,
        data=task.name,
        data_sha256=task.sha256(),
        metric=task.metric,
        seed=seed,
        epoch=run.epoch,
        validation=run.validation,
        test=test,
        parameters=run.trainee.live_parameters,
        seconds=round(run.seconds, 1),
        hardware=hardware(trainer.strategy.root_device),
        versions=versions(),
        commit=commit,
        command=command,
        budget=_cut(plan, run),
        details=details,
        earlier_commits=run.trainee.earlier_commits,
        recipe_file=file if recipe.text else {},
    )


def _save(path: Path, plan: Plan, trainee: Trainee, result: ledger.Result) -> None:
    facts = {key: getattr(result, key) for key in FACTS}
    facts["test_metric"] = next(iter(result.details), result.metric)
    facts |= {"task_arguments": plan.task_arguments}
    facts |= {key: getattr(plan.settings, key) for key in ("carry", "slide", "limit_evaluation")}
    texts = [text.to_json() for text in trainee.task.texts]
    save_checkpoint(path, trainee.model, plan.task, plan.model, plan.hyperparameters, texts=texts, **facts)


def _cut(plan: Plan, run: Fit) -> str | None:
    """Return what cut the run short: seconds, epochs or sequences. The recipe's own early stop does not."""
    asked = plan.recipe.plan(plan.row, plan.variant.split("+")[0], scale=plan.scale).settings
    given, done, reasons = plan.settings, run.trainer.current_epoch, []
    epochs = max(asked.epochs, given.epochs)
    if given.seconds is not None and run.seconds >= given.seconds:
        done = min(done, run.trainer.global_step // int(run.trainer.num_training_batches))
        if asked.seconds is None and done < asked.epochs:
            reasons.append(f"{given.seconds:g} seconds, {done} of {asked.epochs} epochs")
        elif asked.seconds is not None and given.seconds < asked.seconds:
            reasons.append(f"{given.seconds:g} of {asked.seconds:g} seconds")
    elif done == run.trainer.max_epochs and done < epochs and not run.trainer.should_stop:
        reasons.append(f"{done} of {epochs} epochs")
    if given.limit is not None and given.limit < min(asked.limit or math.inf, len(run.trainee.task.split("train"))):
        reasons.append(f"{given.limit} sequences")
    return ", ".join(reasons) or None
