"""The state of a run in training, as a file with a checksum. Loading a file never runs code."""

import hashlib
import io
from pathlib import Path
from typing import Any

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


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write tensors and plain values as `torch.save` does, with their SHA-256 at the end, which `torch.load` ignores.

    Raises:
        OSError: if the file cannot be written. The former file stays.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    digest = hashlib.sha256(buffer.getbuffer()).digest()
    buffer.seek(0, io.SEEK_END)
    buffer.write(digest)
    write_whole(path, buffer.getbuffer())


def load_state(path: Path) -> dict[str, Any]:
    """Read what `save_state` wrote, on the CPU.

    Raises:
        CannotGoOn: if a byte is missing or has changed. `torch.load` alone would read wrong numbers.
    """
    content = memoryview(path.read_bytes())
    whole, digest = content[:-DIGEST], bytes(content[-DIGEST:])
    if hashlib.sha256(whole).digest() != digest:
        raise CannotGoOn(
            f"{path}: the checkpoint is damaged, its checksum does not match; remove {path.parent} and train again"
        )
    return torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)


class Checkpoints(TorchCheckpointIO):
    """How Lightning's trainer reads and writes the checkpoints of a run: with `save_state` and `load_state`."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a checkpoint; see `save_state`."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        save_state(Path(path), checkpoint)

    def load_checkpoint(
        self, path: str | Path, map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Read a checkpoint; see `load_state`."""
        return load_state(Path(path))


def refuse_another(checkpoint: dict[str, Any], card: dict[str, Any], precision: str, epochs: int | None) -> None:
    """Check that a checkpoint is of the run that is to be resumed.

    Raises:
        CannotGoOn: if the card or the precision differs, or if the run already had more epochs.
    """
    saved = checkpoint["rtx"]
    now, then = card | {"precision": precision}, saved["card"] | {"precision": saved["precision"]}
    then.pop("accumulate", None)  # a setting that earlier checkpoints have
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if changed:
        old, new = ({key: one.get(key) for key in changed} for one in (then, now))
        raise CannotGoOn(f"resume: expected what the run began with, {old}, got {new}; or use other --runs")
    had = checkpoint["epoch"] + (checkpoint["batches"] > 0)  # an epoch that has begun counts
    if epochs is not None and had > epochs:
        raise CannotGoOn(f"epochs: expected at least {had}, as the run has had, got {epochs}; or use other --runs")
