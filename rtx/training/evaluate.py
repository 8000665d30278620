"""Score a trained model again, from its checkpoint alone."""

from pathlib import Path
from typing import Any

import torch

from rtx.nn.mode import evaluating
from rtx.nn.validate import check_choice
from rtx.tasks import Task, task_by_name
from rtx.tasks.task import SPLITS, Scores, where_it_is
from rtx.training.batches import evaluation_batches, examination
from rtx.training.checkpoint import load_checkpoint, load_texts, read_card
from rtx.training.deep import language_model
from rtx.training.precision import float32_cudnn


@torch.no_grad()
def evaluate(
    checkpoint: Path, split: str = "test", limit: int | None = None, device: torch.device | str = "cpu"
) -> Scores:
    """The metric of a checkpoint's task on a split, and what else the task measures of what the model writes.

    Args:
        checkpoint: a file of a finished run.
        split: "train", "validation" or "test".
        limit: the first so many examples only; None: all.
        device: where to compute.

    Raises:
        ValueError: if the file is no checkpoint, the split is unknown, or the data give other tokens than the
            checkpoint's, as the standard library's texts do in another version of Python; if the data are others than
            those it was trained on, or it predicts NaN.
    """
    check_choice("split", split, SPLITS)
    card, network = read_card(checkpoint), load_checkpoint(checkpoint).float().to(device)  # as its examples are
    task = _task(checkpoint, card)
    with evaluating(network), float32_cudnn():  # as the run's test was
        scores: Scores = {task.metric: _metric(checkpoint, task, network, split, limit, card)}
        examine = examination(task, bool(card.get("carry")))
        return scores | (examine(network, split, limit) if examine else {})  # type: ignore[arg-type]


def _task(checkpoint: Path, card: dict[str, Any]) -> Task:
    task = task_by_name(card["task"], **card.get("task_arguments", {}))
    ours, given = (tuple(text.to_json() for text in texts) for texts in (task.texts, load_texts(checkpoint)))
    if given and ours != given:
        raise ValueError(f"{checkpoint}: its tokens are not those of {task.name} here, whose data must be others")
    trained, here = card.get("data_sha256"), task.sha256()
    if trained and here != trained:
        raise ValueError(
            f"{checkpoint}: it was trained on data of {task.name} with checksum {trained[:12]}, those here have "
            f"{here and here[:12]}; put the former data in their place, or train again"
        )
    return task


def _metric(
    checkpoint: Path, task: Task, network: torch.nn.Module, split: str, limit: int | None, card: dict[str, Any]
) -> float:
    """The metric, read as the run's test was: a text carried on, or a segment slid along it."""
    metric, state, carry = task.scorer().to(next(network.parameters()).device), None, card.get("carry")
    for batch in evaluation_batches(task, split, bool(carry), limit):
        batch = where_it_is(network, batch)
        if carry:
            predictions, state = language_model(network).read(batch.inputs, state)
        elif card.get("slide"):
            predictions = language_model(network).slide(batch.inputs)
        else:
            predictions = task.predict(network, batch)
        if task.loss(predictions, batch).total.isnan():  # a share of right answers would not show it
            raise ValueError(f"{checkpoint}: predicts nan on the {split} split of {task.name}, expected numbers")
        metric.update(*task.measured(predictions, batch))
    return float(metric.compute())
