"""Trained models as safetensors: numbers and a JSON card, never code, and a checksum over both."""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from rtx.tasks import Task, task_by_name
from rtx.tasks.build import build
from rtx.tasks.subwords import Subwords
from rtx.tasks.task import Text
from rtx.tasks.vocabulary import Vocabulary
from rtx.training.files import write_whole
from rtx.training.rebuild import Shapes, check_sizes, rebuild

log = logging.getLogger(__name__)
TEXTS: dict[str, Callable[[dict[str, Any]], Text]] = {
    "vocabulary": Vocabulary.from_json,
    "subwords": Subwords.from_json,
}
"""What reads the `texts` of a card again, by their kind."""
PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""What a network may compute in; numbers of another kind in a file are read as its own."""


def save_checkpoint(
    path: str | Path, network: nn.Module, task: str, model: str, hyperparameters: dict[str, Any], **facts: Any
) -> None:
    """Write `network` with what is needed to build it again, in one step: the file is whole or not there.

    Args:
        path: the file.
        network: made by `rtx.build(task, model, **hyperparameters)`; also as `torch.compile` returns it.
        task, model, hyperparameters: what `build` was given.
        facts: what else the card shall say (recipe, seed, epoch, …); `texts`, the `to_json` of each of the task's,
            makes it independent of the data they were learned from.
    """
    said = {"task": task, "model": model, "hyperparameters": hyperparameters} | facts
    card = json.loads(json.dumps(said, default=_plain))
    network = getattr(network, "_orig_mod", network)  # torch.compile puts this name before all others
    tensors = {k: v.detach().cpu().contiguous() for k, v in _tensors(network).items()}
    card |= {"sha256": _sha256(card, tensors)}
    # one key alone: safetensors writes several in an order that it draws, and a file's bytes are to be the same twice
    write_whole(Path(path), save(tensors, metadata={"rtx": json.dumps(card)}))


def read_card(path: str | Path) -> dict[str, Any]:
    """What a checkpoint says of itself: task, model, hyperparameters, and the facts it was saved with.

    Raises:
        ValueError: if the file is missing, damaged, or not one of ours.
    """
    return _read(path)[0]


def load_checkpoint(path: str | Path, model: str | None = None) -> nn.Module:
    """The trained network, on the CPU, in the precision it was saved in, ready to predict.

    Args:
        path: a file that `save_checkpoint` wrote.
        model: the model it is expected to be; any by default.

    Raises:
        ValueError: if the file is missing, damaged, not one of ours, another model's, or if its card and its tensors
            do not fit each other.
    """
    card, tensors = _read(path)
    if model is not None and card["model"] != model:
        raise ValueError(f"{path}: expected a checkpoint of {model}, got one of {card['model']}")
    given = {k: tuple(v.shape) for k, v in tensors.items()}
    try:
        check_sizes("hyper-parameters", card["hyperparameters"])
        make = partial(build, _task(card, path), card["model"], **card["hyperparameters"])
        network = rebuild(make, given, _shapes)
    except (ValueError, TypeError, RuntimeError) as error:  # torch's own, of sizes that are none
        raise ValueError(f"{path}: its tensors do not fit {card['model']} ({error})") from None
    for name, own in _tensors(network).items():
        if own.is_floating_point() and tensors[name].dtype in PRECISIONS:
            own.data = own.data.to(tensors[name].dtype)  # in place: tied tensors stay one
    network.load_state_dict(tensors, strict=False)  # tied tensors are there under one of their names
    return network.eval()


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own: JSON knows no other."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a card holds what JSON can, got {value!r}")


def _shapes(network: nn.Module) -> Shapes:
    return {k: tuple(v.shape) for k, v in _tensors(network).items()}


def _tensors(network: nn.Module) -> dict[str, torch.Tensor]:
    """The network's tensors by name; one with several names, as tied embeddings have, by its first."""
    seen: set[int] = set()
    return {
        name: tensor
        for name, tensor in network.state_dict(keep_vars=True).items()
        if id(tensor) not in seen and not seen.add(id(tensor))  # type: ignore[func-returns-value]
    }


def load_texts(path: str | Path) -> tuple[Text, ...]:
    """How a checkpoint's network reads and writes its tokens; nothing, if it reads numbers.

    Raises:
        ValueError: as `read_card`, or if the texts are of an unknown kind.
    """
    return _texts(read_card(path), path)


def _texts(card: dict[str, Any], path: str | Path) -> tuple[Text, ...]:
    try:
        return tuple(TEXTS[table["kind"]](table) for table in card.get("texts", ()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: its texts are damaged or of an unknown kind ({error})") from None


def _task(card: dict[str, Any], path: str | Path) -> Task:
    """The task, as large as it was: its data may be missing here, or others. No file that the card names is opened."""
    texts, arguments = _texts(card, path), dict(card.get("task_arguments", {}))
    check_sizes("task_arguments", arguments)
    if texts:
        arguments.pop("path", None)  # of the text that the tokens were learned from
    task = task_by_name(card["task"], **arguments)
    if not texts:
        return task
    return replace(task, inputs=texts[0].size, outputs=texts[-1].size, texts=texts)


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    if Path(path).is_dir():  # safetensors would say that there is no such device
        raise ValueError(f"{path}: expected a checkpoint, got a folder")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 (not a dict)
        card = json.loads(metadata["rtx"])
        if not isinstance(card, dict):
            raise ValueError("its card names no task and model")
        checked = card.pop("sha256", "")
        if not checked:
            log.warning("%s: was written before checkpoints had a checksum, so damage to it cannot be seen", path)
        elif checked != _sha256(card, tensors):
            raise ValueError("its checksum does not fit")
        if not all(isinstance(card[k], str) for k in ("task", "model")):
            raise ValueError("its card names no task and model")
        if not isinstance(card["hyperparameters"], dict):
            raise ValueError("its card names no hyper-parameters")
        return card, tensors
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such checkpoint") from None
    except OSError as error:  # safetensors' own does not name the file
        raise ValueError(f"{path}: the checkpoint cannot be read ({error})") from None
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:  # JSON's are ValueErrors, too
        raise ValueError(
            f"{path}: expected a checkpoint of rtx, the file is damaged or another kind ({error})"
        ) from None


def _sha256(card: dict[str, Any], tensors: dict[str, torch.Tensor]) -> str:
    """Of the card, and of each tensor's name, shape, type and bytes; safetensors itself has none."""
    digest = hashlib.sha256(json.dumps(card).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
