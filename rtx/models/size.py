"""How large a model is, before memory is allocated for it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

LIMIT = 16 * 2**30  # bytes
MOST = 20_000  # tensors: more of them would need much memory and time even if they were empty


def parameter_bytes(make: Callable[..., nn.Module], limit: int = LIMIT, **hyperparameters: Any) -> int:
    """Return how many bytes the parameters of `make(**hyperparameters)` need.

    Raises:
        ValueError: if this is more than `limit`. The error names the hyper-parameters.
    """
    total = count = 0

    def add(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal total, count
        total, count = total + (0 if parameter is None else parameter.nbytes), count + 1
        if total > 2 * limit or count > MOST:  # a tied parameter is registered more than once
            raise OverflowError("overflow")

    sizes = ", ".join(f"{name} = {value}" for name, value in hyperparameters.items())
    refused = f"model: expected at most {limit / 2**30:g} GiB of parameters in {MOST:,} tensors, got more with {sizes}"
    handle = register_module_parameter_registration_hook(add)
    try:
        with torch.device("meta"):
            size = sum(parameter.nbytes for parameter in make(**hyperparameters).parameters())
    except (ArithmeticError, MemoryError, RuntimeError, TypeError) as error:  # torch has several for large sizes
        if isinstance(error, MemoryError) or "verflow" in str(error):
            raise ValueError(refused) from None
        raise
    finally:
        handle.remove()
    if size > limit:
        raise ValueError(refused)
    return size
