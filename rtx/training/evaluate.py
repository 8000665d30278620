"""Score a trained model again, from its checkpoint alone."""

from pathlib import Path
from typing import Any, cast

import torch

from rtx.models import LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_choice
from rtx.tasks import Task, task_by_name
from rtx.tasks.task import SPLITS, Scores, where_it_is
from rtx.training.batches import evaluation_batches, examination
from rtx.training.checkpoint import load_checkpoint, load_texts, read_card
from rtx.training.precision import float32_cudnn


@torch.no_grad()
def evaluate(
    checkpoint: Path, split: str = "test", limit: int | None = None, device: torch.device | str = "cpu"
) -> Scores:
    """Return the metric of a checkpoint's task on a split, and the scores that the task's own test adds.

    Args:
        checkpoint: a file of a finished run.
        split: "train", "validation" or "test".
        limit: use only the first so many examples; None: all.
        device: where to compute.

    Raises:
        ValueError: if the file is not a checkpoint, or the model predicts NaN; if the data here, or the tokens that
            are made of them, are not those that the model was trained on.
    """
    check_choice("split", split, SPLITS)
    card, network = read_card(checkpoint), load_checkpoint(checkpoint).float().to(device)  # examples are float32
    task = _task(checkpoint, card)
    with evaluating(network), float32_cudnn():
        scores: Scores = {task.metric: _metric(checkpoint, task, network, split, limit, card)}
        examine = examination(task, bool(card.get("carry")))
        return scores | (examine(network, split, limit) if examine else {})  # type: ignore[arg-type]


def _task(checkpoint: Path, card: dict[str, Any]) -> Task:
    task = task_by_name(card["task"], **card.get("task_arguments", {}))
    ours, given = (tuple(text.to_json() for text in texts) for texts in (task.texts, load_texts(checkpoint)))
    if given and ours != given:
        raise ValueError(f"{checkpoint}: its tokens are not those of {task.name} here, so the data must differ")
    trained, here = card.get("data_sha256"), task.sha256()
    if trained and here != trained:
        raise ValueError(
            f"{checkpoint}: it was trained on data of {task.name} with checksum {trained[:12]}, the data here have "
            f"{here and here[:12]}; use the former data, or train again"
        )
    return task


def _metric(
    checkpoint: Path, task: Task, network: torch.nn.Module, split: str, limit: int | None, card: dict[str, Any]
) -> float:
    """Compute the metric as the run's own test did: with a carried state, or with a sliding segment, if it had one."""
    metric, state, stateful = task.scorer().to(next(network.parameters()).device), None, bool(card.get("carry"))
    for batch in evaluation_batches(task, split, stateful, limit):
        batch = where_it_is(network, batch)
        if stateful:
            predictions, state = cast(LanguageModel, network).read(batch.inputs, state)
        elif card.get("slide"):
            predictions = cast(LanguageModel, network).slide(batch.inputs)
        else:
            predictions = task.predict(network, batch)
        if task.loss(predictions, batch).total.isnan():  # NaN would only look like a wrong answer
            raise ValueError(f"{checkpoint}: predicts nan on the {split} split of {task.name}, expected numbers")
        metric.update(*task.measured(predictions, batch))
    return float(metric.compute())
