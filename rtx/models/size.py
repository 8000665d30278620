"""How large a model is, before memory is allocated for it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

LIMIT = 16 * 2**30  # bytes


def parameter_bytes(make: Callable[..., nn.Module], limit: int = LIMIT, **hyperparameters: Any) -> int:
    """Return how many bytes the parameters of `make(**hyperparameters)` need.

    Raises:
        ValueError: if this is more than `limit`. The error names the hyper-parameters.
    """
    try:
        with torch.device("meta"):  # tensors with shapes only
            size: float = sum(parameter.nbytes for parameter in make(**hyperparameters).parameters())
    except (ArithmeticError, RuntimeError, TypeError) as error:  # torch has several for very large sizes
        if "verflow" not in str(error):
            raise
        size = float("inf")
    if size > limit:
        sizes = ", ".join(f"{name} = {value}" for name, value in hyperparameters.items())
        raise ValueError(f"model: expected at most {limit / 2**30:g} GiB of parameters, got more with {sizes}")
    return int(size)
