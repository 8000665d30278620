"""Small trained models that come with the package, as float16. Explorers compute with the same files in the page.

| name | model | recipe, row | trained on |
| --- | --- | --- | --- |
| `lookup` | Transformer of two blocks with two heads each | `look-up`, `transformer` | drawn sequences |
| `characters-gru` | GRU | `characters`, `gru` | the Python reference manual |
| `characters-transformer` | Transformer with relative positions | `characters`, `transformer` | the same |
| `characters-r-transformer` | R-Transformer | `characters`, `r-transformer` | the same |
| `bach` | R-Transformer of two blocks | `bach`, `r-transformer` | Bach's chorales |

The manual is the text that the standard library ships for `help()`, of Python 3.11: its first nine tenths. The chorales
are those in the corpus of music21: four fifths of them. The card of a file has the checksum of the data, the seed, and
the test score of the float16 weights beside that of a baseline. `python studies/pretrained.py` writes the files.
"""

from pathlib import Path
from typing import Any

from torch import nn

from rtx.nn.validate import check_choice
from rtx.training.checkpoint import load_checkpoint, read_card

FOLDER = Path(__file__).with_name("weights")
ROWS = {
    "lookup": ("look-up", "transformer"),
    "characters-gru": ("characters", "gru"),
    "characters-transformer": ("characters", "transformer"),
    "characters-r-transformer": ("characters", "r-transformer"),
    "bach": ("bach", "r-transformer"),
}
"""Name → the recipe and its row."""


def pretrained(name: str) -> nn.Module:
    """Return a trained model in evaluation mode. Its numbers are those of the file, its arithmetic is in float32."""
    return load_checkpoint(path_of(name)).float()


def card_of(name: str) -> dict[str, Any]:
    """Return what is known about a trained model: task, model, hyperparameters, data, scores, symbols."""
    return read_card(path_of(name))


def weights(name: str) -> bytes:
    """Return the safetensors file of a trained model."""
    return path_of(name).read_bytes()


def path_of(name: str) -> Path:
    """Return where the file of a trained model is."""
    return FOLDER / f"{check_choice('name', name, ROWS)}.safetensors"
