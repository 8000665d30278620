"""The state of a run in training, as a file: never code, damage is found, the newest two are kept."""

import hashlib
import io
import logging
import os
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO

from rtx.nn.streaming import map_state
from rtx.training.files import write_whole

log = logging.getLogger(__name__)
DIGEST = hashlib.sha256().digest_size


class CannotGoOn(ValueError):
    """A run cannot be taken up as it is asked for: its checkpoint is another's, or damaged, or another process has it.

    It says nothing against the run.
    """


class Exploded(ValueError):
    """A run failed by itself: its loss, a gradient, a weight or its validation is no longer finite."""


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write tensors and plain values as `torch.save` does, and their SHA-256 behind, which `torch.load` skips.

    torch alone would not do: of a tensor whose bits have changed on the disk, it loads the wrong numbers.

    Raises:
        OSError: if it cannot be written; what stood there before still does.
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
        ValueError: if a byte of it is missing or has changed.
        OSError: if it cannot be read.
    """
    content = memoryview(path.read_bytes())
    whole, digest = content[:-DIGEST], bytes(content[-DIGEST:])
    if hashlib.sha256(whole).digest() != digest:
        raise ValueError(f"{path}: the checkpoint is damaged, its checksum does not fit")
    return torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)


def previous(path: Path) -> Path:
    """Where the checkpoint before the one at `path` is kept."""
    return path.with_name("previous" + path.suffix)


class Checkpoints(CheckpointIO):
    """How Lightning's trainer reads and writes checkpoints here: the newest and the one before are kept."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write the newest checkpoint; the one that was becomes the one before.

        Raises:
            OSError: if it cannot be written; both that were there still are.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name("new" + path.suffix)
        save_state(new, checkpoint)
        if path.exists():
            os.replace(path, previous(path))
        os.replace(new, path)

    def load_checkpoint(
        self, path: str | Path, map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Read the newest checkpoint; if it is damaged, say so and read the one before.

        Raises:
            CannotGoOn: if none is whole.
        """
        path, faults = Path(path), []
        for one in (path, previous(path)):
            if not one.exists():
                continue
            try:
                state = load_state(one)
            except (ValueError, OSError) as error:
                faults.append(str(error))
                continue
            if faults:
                log.warning("%s; going on from the one before, %s", faults[0], one)
            return state
        raise CannotGoOn(
            f"resume: no checkpoint is left to go on from ({'; '.join(faults) or path}); "
            f"remove {path.parent} and start again without --resume"
        )

    def remove_checkpoint(self, path: str | Path) -> None:
        """Delete a checkpoint."""
        Path(path).unlink(missing_ok=True)


def refuse_another(checkpoint: dict[str, Any], card: dict[str, Any], precision: str, epochs: int | None) -> None:
    """Only the run that a checkpoint is of may go on from it.

    Args:
        checkpoint: what `rtx.training.module.Trainee` has saved.
        card: what is trained.
        precision: in which it is computed.
        epochs: how many it is to have in all; None: as many as it takes.

    Raises:
        CannotGoOn: if it was another model's, or its hyper-parameters were others; if it computed in another precision,
            on other data, or for more epochs than it is to have.
    """
    saved, data = checkpoint["rtx"], card.get("data_sha256")
    trained = saved["card"].setdefault("data_sha256", data)  # older ones do not say
    if trained != data and {**saved["card"], "data_sha256": data} == card:
        raise CannotGoOn(f"resume: expected the data of the run, with checksum {trained}, got others, with {data}")
    if saved["card"] != card:
        raise CannotGoOn(f"resume: expected the checkpoint of {card}, got one of {saved['card']}")
    if saved.get("precision", precision) != precision:  # older ones do not say
        raise CannotGoOn(
            f"precision: expected the run's, {saved['precision']}, got {precision}; --runs keeps two apart"
        )
    had = checkpoint["epoch"] + (checkpoint.get("batches", 0) > 0)  # or has begun
    if epochs is not None and had > epochs:
        raise CannotGoOn(
            f"epochs: expected at least {had}, as the run had so many, got {epochs}; --runs keeps two apart"
        )


def to_device(state: Any, device: torch.device | str) -> Any:
    """A model's state on a device."""
    return map_state(lambda tensor: tensor.to(device), state)
