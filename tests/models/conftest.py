"""The fixture that runs a test over every registered model."""

from collections.abc import Callable

import pytest
import torch

from rtx.models import MODELS
from rtx.tasks.build import hyperparameter_names

SMALL = {"d_model": 8, "layers": 2, "heads": 2, "window": 4}


@pytest.fixture(params=sorted(MODELS))
def small_model(request) -> Callable[..., torch.nn.Module]:
    """Builds the model at a small size, without dropout; arguments it does not have are left out."""

    def make(**changes: object) -> torch.nn.Module:
        torch.manual_seed(0)
        wanted = SMALL | changes
        return MODELS[request.param](**{k: v for k, v in wanted.items() if k in hyperparameter_names(request.param)})

    return make
