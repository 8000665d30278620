"""Score a model: the batches of a split, and a trained model again, from its checkpoint alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from rtx.models import LanguageModel
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_choice
from rtx.tasks import Task, task_by_name
from rtx.tasks.loader import loader
from rtx.tasks.registry import task_arguments
from rtx.tasks.task import IGNORED, SPLITS, Batch, Scores, Split, Text, collate, where_it_is
from rtx.tasks.text import windows
from rtx.training.checkpoint import load_checkpoint, load_texts, read_card
from rtx.training.precision import float32_cudnn

AT_ONCE = 32
RESTORE = "; restore the files that the model was trained on"


def examination(task: Task, stateful: bool) -> Callable[[nn.Module, Split, int | None], Scores] | None:
    """Return the task's own test if it has one.

    The test of a text carries a model's state along the text. A model that was validated window by window is also
    tested window by window, by its metric alone.
    """
    return None if task.per == "token" and not stateful else task.examine


def evaluation_batches(task: Task, split: str, stateful: bool, limit: int | None) -> DataLoader[Batch]:
    """Return the batches of a split for scoring, of the first `limit` examples.

    With `stateful`, a batch is the next piece of a text. Otherwise sequences of similar length are put together.
    """
    size, order = (1, "columns") if stateful else (AT_ONCE, "by length")
    return loader(task, split, size, order=order, limit=limit)


@torch.no_grad()
def evaluate(
    checkpoint: Path, split: str = "test", limit: int | None = None, device: torch.device | str = "cpu"
) -> Scores:
    """Return the metric of a checkpoint's task on a split, and the scores that the task's own test adds.

    With `limit`, only the first so many examples are used; by default as many as in the run's own validation and test.
    Data on which the model was not trained are refused.
    """
    check_choice("split", split, SPLITS)
    card, network = read_card(checkpoint), load_checkpoint(checkpoint).float().to(device)  # examples are float32
    card["slide"] = card.get("slide") and split == "test"  # a run slides in its test, not in its validation
    limit = card.get("limit_evaluation") if limit is None and split != "train" else limit
    task, stateful = task_of(checkpoint, card), bool(card.get("carry"))
    metric, state = task.scorer().to(device), None
    with evaluating(network), float32_cudnn():
        for batch in evaluation_batches(task, split, stateful, limit):
            batch = where_it_is(network, batch)
            if stateful or card.get("slide"):
                predictions, state = _read(cast(LanguageModel, network), batch, card, state)
            else:
                predictions = task.predict(network, batch)
            if task.loss(predictions, batch).total.isnan():  # NaN would only look like a wrong answer
                raise ValueError(f"{checkpoint}: predicts nan on the {split} split of {task.name}, expected numbers")
            metric.update(*task.measured(predictions, batch))
        examine = examination(task, stateful)
        own: Scores = examine(network, split, limit) if examine else {}  # type: ignore[arg-type]
    return {task.metric: float(metric.compute())} | own


def task_of(checkpoint: Path, card: dict[str, Any]) -> Task:
    """Return the task of a checkpoint, if the data here are those that it was trained on."""
    task = task_by_name(card["task"], **card.get("task_arguments", {}))
    given = [text.to_json() for text in load_texts(checkpoint)]
    if given and given != [text.to_json() for text in task.texts]:
        raise ValueError(f"{checkpoint}: its tokens are not those of {task.name} here, so the data differ{RESTORE}")
    trained, here = card.get("data_sha256"), task.sha256()
    if trained and here != trained:
        expected = f"expected data of {task.name} with checksum {trained}, as in training"
        raise ValueError(f"{checkpoint}: {expected}, got {here}{RESTORE}")
    return task


def _read(network: LanguageModel, batch: Batch, card: dict[str, Any], state: Any) -> tuple[Tensor, Any]:
    """Return the logits of a batch as the run's own test computes them, and the next state if one is carried."""
    if card.get("carry"):
        return network.read(batch.inputs, state)
    return network.slide(batch.inputs) if card.get("slide") else network(batch.inputs), None


@torch.no_grad()
def token_nats(
    network: LanguageModel, card: dict[str, Any], text: Text, tokens: Int[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """Return -log p of each token of a text in nats. The text is read as the run's own test reads a text."""
    given = {name: one.default for name, one in task_arguments(card["task"]).items()} | card.get("task_arguments", {})
    pieces = windows([tokens], text.start, given["context"], given["scored"])
    found, state, together = [], None, 1 if card.get("carry") else AT_ONCE
    with evaluating(network), float32_cudnn():
        for first in range(0, len(pieces), together):
            batch = where_it_is(network, collate(pieces[first : first + together], "token"))
            logits, state = _read(network, batch, card, state)
            scored = batch.targets != IGNORED
            found.append(cross_entropy(logits[scored].float(), batch.targets[scored], reduction="none").cpu())
    return torch.cat(found)
