"""The fixtures that run a test over every registered model, and over what else the papers build from them."""

from collections.abc import Callable

import pytest
import torch

from rtx.models import MODELS
from rtx.tasks.build import hyperparameter_names

SMALL = {"d_model": 8, "layers": 2, "heads": 2, "window": 4, "segment": 4, "memory": 6, "d_hidden": 12}
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {name: (name, {}) for name in sorted(MODELS)} | {
    "r-transformer-lstm-pre": ("r-transformer", {"cell": "lstm", "norm": "pre", "local_layers": 2}),
    "r-transformer-sinusoids": ("r-transformer", {"position": "sinusoidal"}),
    "r-transformer-no-attention": ("r-transformer", {"heads": 0}),
    "r-transformer-no-local": ("r-transformer", {"local_layers": 0}),
    "transformer-relative": ("transformer", {"position": "relative", "max_distance": 3}),
    "transformer-learned": ("transformer", {"position": "learned", "max_length": 12_000}),
    "mc-rnn-gru-per-gate-clipped": ("mc-rnn", {"cell": "gru", "mapping": "per-gate", "start": "clipped"}),
    "ho-rnn-gated": ("ho-rnn", {"pooling": "gated"}),
    "hm-rnn-3": ("hm-rnn", {"layers": 3}),
    "griffin-attention": ("griffin", {"layers": 3}),
    "transformer-none": ("transformer", {"position": "none"}),
}
"""A registered model's name and arguments by the name a test shows."""


@pytest.fixture(params=VARIANTS)
def variant(request) -> str:
    """The variant a test runs on."""
    return request.param


@pytest.fixture
def small_sizes(variant: str) -> Callable[..., tuple[str, dict[str, object]]]:
    """The variant's model and small sizes for it, changed as asked; arguments it does not have are left out."""
    name, own = VARIANTS[variant]

    def sizes(**changes: object) -> tuple[str, dict[str, object]]:
        return name, {k: v for k, v in (SMALL | own | changes).items() if k in hyperparameter_names(name)}

    return sizes


@pytest.fixture
def small_model(small_sizes) -> Callable[..., torch.nn.Module]:
    """Builds the model at a small size, without dropout."""

    def make(**changes: object) -> torch.nn.Module:
        torch.manual_seed(0)
        name, sizes = small_sizes(**changes)
        return MODELS[name](**sizes)

    return make
