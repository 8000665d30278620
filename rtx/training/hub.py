"""Checkpoints as models of huggingface_hub: a folder, `save_pretrained` and `from_pretrained`."""

import json
from pathlib import Path
from typing import Any, Self

from huggingface_hub import ModelCard, ModelHubMixin, constants, hf_hub_download
from torch import Tensor, nn

from rtx.training.checkpoint import load_checkpoint, read_card, save_checkpoint
from rtx.training.files import write_whole

TOLD = ("hyperparameters", "recipe", "variant", "scale", "seed", "epoch", "data", "test_metric", "test", "commit")
# without a licence: which one is possible depends on the data
README = """---
library_name: rtx
tags: [rtx]
---

# {model}, trained on {task}

{facts}

```python
from rtx.training.hub import Pretrained

network = Pretrained.from_pretrained("folder or name on the Hub").network
```
"""


class Pretrained(nn.Module, ModelHubMixin):
    """A network with its card. A folder holds both as `model.safetensors`, and the card once more as `config.json`.

    `Pretrained.of(checkpoint).save_pretrained(folder)` writes the folder for a run's `best.safetensors`.
    `Pretrained.from_pretrained(folder)` reads the folder without a network connection. A name that is no
    folder here is looked up on the Hub.
    """

    def __init__(self, network: nn.Module, card: dict[str, Any]) -> None:
        super().__init__()
        self.network, self.card = network, card

    @classmethod
    def of(cls, checkpoint: str | Path) -> Self:
        """Return the network and the card of a checkpoint, in evaluation mode."""
        return cls(load_checkpoint(checkpoint), read_card(checkpoint)).eval()

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return what the network predicts."""
        predictions: Tensor = self.network(*inputs)
        return predictions

    def _save_pretrained(self, save_directory: Path) -> None:
        save_checkpoint(save_directory / constants.SAFETENSORS_SINGLE_FILE, self.network, **self.card)
        card = json.dumps(self.card, indent=2, sort_keys=True) + "\n"
        write_whole(save_directory / constants.CONFIG_NAME, card.encode())

    def generate_model_card(self, **_: Any) -> ModelCard:
        """Return the README of the folder."""
        facts = "\n".join(f"- {name}: {self.card[name]}" for name in TOLD if name in self.card)
        return ModelCard(README.format(model=self.card["model"], task=self.card["task"], facts=facts))

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **options: Any) -> Self:
        if Path(model_id).is_dir():
            return cls.of(Path(model_id) / constants.SAFETENSORS_SINGLE_FILE)
        return cls.of(hf_hub_download(model_id, constants.SAFETENSORS_SINGLE_FILE, **options))
