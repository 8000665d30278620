"""Trained models as safetensors files: tensors, a JSON card, and a checksum of both. Loading a file never runs code."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from rtx.tasks import Task, task_by_name
from rtx.tasks.build import build
from rtx.tasks.subwords import Subwords
from rtx.tasks.task import Text
from rtx.tasks.vocabulary import Vocabulary
from rtx.training.files import write_whole

TEXTS: dict[str, type[Vocabulary] | type[Subwords]] = {"vocabulary": Vocabulary, "subwords": Subwords}
"""What the `texts` of a card are, by their kind."""


def save_checkpoint(
    path: str | Path, network: nn.Module, task: str, model: str, hyperparameters: dict[str, Any], **facts: Any
) -> None:
    """Write a network, also as `torch.compile` returns it, with the card that `load_checkpoint` builds it from.

    Raises a ValueError if the network is not the one that `rtx.build` makes from the card.

    Args:
        task, model, hyperparameters: what `rtx.build` was given.
        facts: what else the card should say, such as recipe, seed and epoch. `texts` holds the `to_json` of each of
            the task's texts; with them the checkpoint does not need the data that the tokens were learned from.
    """
    said = {"task": task, "model": model, "hyperparameters": hyperparameters} | facts
    card = json.loads(json.dumps(said, default=lambda number: number.item()))  # NumPy's numbers as Python's
    network = getattr(network, "_orig_mod", network)  # torch.compile puts this name before all others
    tensors = {k: v.detach().cpu().contiguous() for k, v in _tensors(network).items()}
    _build(card, tensors, path)
    card |= {"sha256": _sha256(card, tensors)}
    # one metadata key only: safetensors writes several in random order, and equal runs should give equal files
    write_whole(Path(path), save(tensors, metadata={"rtx": json.dumps(card)}))


def read_card(path: str | Path) -> dict[str, Any]:
    """Return a checkpoint's card: task, model, hyperparameters, and the facts it was saved with."""
    return _read(path)[0]


def load_checkpoint(path: str | Path) -> nn.Module:
    """Return the trained network on the CPU, in evaluation mode and in the precision it was saved in."""
    card, tensors = _read(path)
    network = _build(card, tensors, path)()
    for name, tensor in _tensors(network).items():
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(tensors[name].dtype)  # in place, so tied tensors stay one tensor
    network.load_state_dict(tensors, strict=False)  # the file has tied tensors under one of their names only
    return network.eval()


def load_texts(path: str | Path) -> tuple[Text, ...]:
    """Return how a checkpoint's network reads and writes its tokens; an empty tuple if it reads numbers."""
    return _texts(read_card(path))


def _build(card: dict[str, Any], tensors: dict[str, Tensor], path: str | Path) -> Callable[[], nn.Module]:
    """Return a function that makes the network of a card. Raise a ValueError if other tensors belong to it."""
    try:
        make = partial(build, _task(card), card["model"], **card["hyperparameters"])
        with torch.device("meta"):  # sizes that a file only claims must not take memory
            expected = _tensors(make())
        kinds = [{k: (*v.shape, v.is_floating_point()) for k, v in one.items()} for one in (expected, tensors)]
        if odd := [k for k in kinds[0] | kinds[1] if kinds[0].get(k) != kinds[1].get(k)]:
            wanted, given = (tuple(one[odd[0]].shape) if odd[0] in one else "none" for one in (expected, tensors))
            raise ValueError(f"{len(odd)} tensors differ: expected {odd[0]} {wanted}, got {given}")
    except Exception as error:  # odd sizes make torch and Python raise many kinds
        raise ValueError(f"{path}: no {card['model']} of this task can have these tensors ({error})") from None
    return make


def _texts(card: dict[str, Any]) -> tuple[Text, ...]:
    return tuple(TEXTS[table["kind"]].from_json(table) for table in card.get("texts", ()))


def _task(card: dict[str, Any]) -> Task:
    """Return the task with the vocabulary of the card. No data are read: they may be missing here, or differ."""
    texts, arguments = _texts(card), dict(card.get("task_arguments", {}))
    if texts:
        arguments.pop("path", None)  # the text that the vocabulary was made from
    task = task_by_name(card["task"], **arguments)
    return replace(task, inputs=texts[0].size, outputs=texts[-1].size, texts=texts) if texts else task


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return the network's tensors by name. A tensor with several names, as tied embeddings have, gets its first."""
    found: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in network.state_dict(keep_vars=True).items():
        found.setdefault(id(tensor), (name, tensor))
    return dict(found.values())


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not Path(path).is_file():  # reading a device may never end
        raise ValueError(f"{path}: expected a checkpoint, found no file of this name")
    try:
        with safe_open(path, framework="pt") as file:
            card = json.loads(file.metadata()["rtx"])
            tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 (not a dict)
        checksum = card.pop("sha256", None)  # the first checkpoints have none
        if checksum is not None and checksum != _sha256(card, tensors):
            raise ValueError("its checksum does not match")
        if not card.keys() >= {"task", "model", "hyperparameters"}:
            raise ValueError("its card has no task, no model or no hyperparameters")
        _texts(card)
    except (SafetensorError, OSError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{path}: expected a checkpoint of rtx, got a damaged or another file ({error})") from None
    return card, tensors


def _sha256(card: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """Return the checksum of the card, and of each tensor's name, shape, type and bytes."""
    digest = hashlib.sha256(json.dumps(card).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
