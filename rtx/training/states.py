"""The state of a run in training: its random number generators, and a file with a checksum.

Loading a file never runs code.
"""

import hashlib
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO

from rtx.training.files import write_whole

DIGEST = hashlib.sha256().digest_size


class CannotGoOn(ValueError):
    """A run cannot be resumed as asked: its checkpoint is damaged or of another run, or another process has the run.

    The run itself has not failed.
    """


class Exploded(ValueError):
    """A run failed by itself: its loss, a gradient, a weight or its validation is no longer finite."""


def random_state(device: torch.device) -> dict[str, Any]:
    """Return the states of the generators of Python, NumPy and torch, also of torch's generator on a GPU."""
    name, keys, *rest = np.random.get_state(legacy=True)
    found: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    found["numpy"] = (name, torch.tensor(np.asarray(keys, np.int64)), *rest)
    if device.type != "cpu":
        found["device"] = torch.get_device_module(device).get_rng_state(device)
    return found


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Set every generator to the state that `random_state` returned."""
    random.setstate(state["python"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if device.type != "cpu" and "device" in state:  # a run may move from a CPU to a GPU
        torch.get_device_module(device).set_rng_state(state["device"], device)


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write tensors and plain values as `torch.save` does, and their SHA-256 behind them. `torch.load` ignores it."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    digest = hashlib.sha256(buffer.getbuffer()).digest()
    buffer.seek(0, io.SEEK_END)
    buffer.write(digest)
    write_whole(path, buffer.getbuffer())


def load_state(path: Path) -> dict[str, Any]:
    """Read what `save_state` wrote, on the CPU. `torch.load` alone would not see that a byte has changed."""
    content = memoryview(path.read_bytes())
    whole, digest = content[:-DIGEST], bytes(content[-DIGEST:])
    if hashlib.sha256(whole).digest() != digest:
        raise CannotGoOn(f"{path}: the checkpoint is damaged; remove it and train again")
    return torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)


class Checkpoints(TorchCheckpointIO):
    """How Lightning's trainer reads and writes the checkpoints of a run: with `save_state` and `load_state`."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, *_: Any, **__: Any) -> None:
        """Write a checkpoint; see `save_state`."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        save_state(Path(path), checkpoint)

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        """Read a checkpoint; see `load_state`."""
        return load_state(Path(path))


def refuse_another(checkpoint: dict[str, Any], card: dict[str, Any], precision: str, epochs: int | None) -> None:
    """Refuse a checkpoint with another card or precision, or of a run that already had more epochs."""
    saved = checkpoint["rtx"]
    now, then = card | {"precision": precision}, saved["card"] | {"precision": saved["precision"]}
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if "data_sha256" in changed:
        data = now.get("path", now["task"])
        changes = f"the data of {data if isinstance(data, str) else ', '.join(data)} have changed since this run began"
        raise CannotGoOn(f"resume: {changes}; restore them, or train again in another folder for --runs")
    if changed:
        differ = ", ".join(f"{key}: {then.get(key)} before, {now.get(key)} now" for key in changed)
        raise CannotGoOn(f"resume: {differ}; use the former values, or another folder for --runs")
    had = checkpoint["epoch"] + (checkpoint["batches"] > 0)  # an epoch that has begun counts
    if epochs is not None and had > epochs:
        few = f"epochs: expected at least {had}, because the run has had so many, got {epochs}"
        raise CannotGoOn(f"{few}; or use another folder for --runs")
