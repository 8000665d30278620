"""Checkpoints as huggingface_hub has models: a folder, `save_pretrained` and `from_pretrained`."""

import json
from pathlib import Path
from typing import Any, Self

from huggingface_hub import ModelHubMixin, constants, hf_hub_download
from torch import Tensor, nn

from rtx.training.checkpoint import load_checkpoint, read_card, save_checkpoint
from rtx.training.files import write_whole


class Pretrained(
    nn.Module,
    ModelHubMixin,
    library_name="rtx",
    license="mit",
    tags=["rtx"],
):
    """A network with its card, which a folder holds whole: `model.safetensors`, and the card again as `config.json`.

    `Pretrained.of(checkpoint).save_pretrained(folder)` makes the folder of a run's `best.safetensors`;
    `Pretrained.from_pretrained(folder)` reads it, without the net. What a checkpoint cannot do, this cannot either:
    no code is run, damage is found.

    Args:
        network: made by `rtx.build(task, model, **hyperparameters)`.
        card: these three by their names, and what else is to be said of it: recipe, data, metric, scores.

    Raises:
        ValueError: if the card lacks one of the three.
    """

    def __init__(self, network: nn.Module, card: dict[str, Any]) -> None:
        super().__init__()
        if missing := [name for name in ("task", "model", "hyperparameters") if name not in card]:
            raise ValueError(f"card: expected task, model and hyperparameters, missing {', '.join(missing)}")
        self.network, self.card = network, card

    @classmethod
    def of(cls, checkpoint: str | Path) -> Self:
        """The network of a checkpoint, with its card, ready to predict.

        Raises:
            ValueError: as `load_checkpoint`.
        """
        return cls(load_checkpoint(checkpoint), read_card(checkpoint)).eval()

    def forward(self, *inputs: Tensor) -> Tensor:
        """What the network makes of them."""
        predictions: Tensor = self.network(*inputs)
        return predictions

    def _save_pretrained(self, save_directory: Path) -> None:
        save_checkpoint(save_directory / constants.SAFETENSORS_SINGLE_FILE, self.network, **self.card)
        card = json.dumps(self.card, indent=2, sort_keys=True) + "\n"
        write_whole(save_directory / constants.CONFIG_NAME, card.encode())

    @classmethod
    def _from_pretrained(
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: Any,
        force_download: bool,
        local_files_only: bool,
        token: Any,
        **_: Any,
    ) -> Self:
        if Path(model_id).is_dir():
            return cls.of(Path(model_id) / constants.SAFETENSORS_SINGLE_FILE)
        return cls.of(
            hf_hub_download(
                model_id,
                constants.SAFETENSORS_SINGLE_FILE,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
            )
        )
