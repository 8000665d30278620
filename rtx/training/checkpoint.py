"""Trained models as safetensors: numbers and a JSON card, never code."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from rtx.tasks.build import build


def save_checkpoint(
    path: Path, network: nn.Module, task: str, model: str, hyperparameters: dict[str, Any], **facts: Any
) -> None:
    """Write `network` with what is needed to build it again, in one step: the file is whole or not there.

    Args:
        path: the file.
        network: made by `rtx.build(task, model, **hyperparameters)`.
        task, model, hyperparameters: what `build` was given.
        facts: what else the card shall say (recipe, seed, epoch, …).
    """
    card = {"task": task, "model": model, "hyperparameters": hyperparameters} | facts
    tensors = {k: v.detach().cpu().contiguous() for k, v in network.state_dict().items()}
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(save(tensors, metadata={"rtx": json.dumps(card)}))
    os.replace(partial, path)


def read_card(path: str | Path) -> dict[str, Any]:
    """What a checkpoint says of itself: task, model, hyperparameters, and the facts it was saved with.

    Raises:
        ValueError: if the file is missing, truncated, or not one of ours.
    """
    return _read(path)[0]


def load_checkpoint(path: str | Path, model: str | None = None) -> nn.Module:
    """The trained network, on the CPU, ready to predict.

    Args:
        path: a file that `save_checkpoint` wrote.
        model: the model it is expected to be; any by default.

    Raises:
        ValueError: if the file is missing, truncated, not one of ours, or another model's.
    """
    card, tensors = _read(path)
    if model is not None and card["model"] != model:
        raise ValueError(f"{path}: expected a checkpoint of {model}, got one of {card['model']}")
    network = build(card["task"], card["model"], **card["hyperparameters"])
    expected = {k: tuple(v.shape) for k, v in network.state_dict().items()}
    given = {k: tuple(v.shape) for k, v in tensors.items()}
    if expected != given:
        odd = sorted({k for k, _ in expected.items() ^ given.items()})
        raise ValueError(f"{path}: tensors do not fit {card['model']}, missing, unknown or of another shape: {odd}")
    network.load_state_dict(tensors)
    return network.eval()


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            card = json.loads((file.metadata() or {})["rtx"])
            return card, {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 (not a dict)
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such checkpoint") from None
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path}: expected a checkpoint of rtx, the file is damaged or another kind ({error})"
        ) from None
