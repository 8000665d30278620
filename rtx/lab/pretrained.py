"""Small trained models that come with the package, as float16. `python studies/pretrained.py` writes their files.

The character models have read the first nine tenths of the Python reference manual of 3.11, as `help()` has it. `bach`
has read four fifths of the chorales in music21, `lookup` drawn sequences. A file's card has the checksum of the data,
the seed, and the test score beside that of a baseline.
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
    """Return a trained model in evaluation mode, which computes in float32."""
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
