"""Fixtures that run a test over every registered model, and over the variants of the papers."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rtx.models import MODELS, CausalModel
from rtx.tasks.build import hyperparameter_names

sys.path.append(str(Path(__file__).parents[1] / "faults"))  # for references.py

SMALL = {"d_model": 8, "layers": 2, "heads": 2, "window": 4, "segment": 4, "memory": 6, "d_hidden": 12}
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {name: (name, {}) for name in sorted(MODELS)} | {
    "r-transformer-lstm-pre": ("r-transformer", {"cell": "lstm", "norm": "pre", "local_layers": 2}),
    "r-transformer-sinusoids": ("r-transformer", {"position": "sinusoidal"}),
    "r-transformer-no-attention": ("r-transformer", {"heads": 0}),
    "r-transformer-no-local": ("r-transformer", {"local_layers": 0}),
    "transformer-relative": ("transformer", {"position": "relative", "max_distance": 3}),
    "r-transformer-relative": ("r-transformer", {"position": "relative", "max_distance": 3}),
    "r-transformer-convolution": ("r-transformer", {"cell": "convolution"}),
    "transformer-rotary": ("transformer", {"position": "rotary"}),
    "transformer-alibi": ("transformer", {"position": "alibi"}),
    "transformer-learned": ("transformer", {"position": "learned", "max_length": 12_000}),
    "mc-rnn-gru-clipped": ("mc-rnn", {"cell": "gru", "start": "clipped"}),
    "hm-rnn-3": ("hm-rnn", {"layers": 3}),
    "griffin-attention": ("griffin", {"layers": 3}),
    "transformer-none": ("transformer", {"position": "none"}),
    "transformer-xl-pre": ("transformer-xl", {"norm": "pre"}),
}
"""The registered model and its arguments, by the name that a test shows."""


@pytest.fixture(params=VARIANTS)
def variant(request) -> str:
    return request.param


@pytest.fixture
def small_sizes(variant: str) -> Callable[..., tuple[str, dict[str, object]]]:
    """Return a function that gives the variant's model and small sizes. It leaves unknown arguments out."""
    name, own = VARIANTS[variant]
    known = hyperparameter_names(name)
    return lambda **changes: (name, {k: v for k, v in (SMALL | own | changes).items() if k in known})


@pytest.fixture
def small_model(small_sizes) -> Callable[..., CausalModel]:
    """Return a function that builds the variant at a small size, without dropout."""

    def make(**changes: object) -> CausalModel:
        torch.manual_seed(0)
        name, sizes = small_sizes(**changes)
        return MODELS[name](**sizes)

    return make
