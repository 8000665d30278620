"""The state of every random number generator that a training step may use, as plain values."""

import random
from typing import Any

import numpy as np
import torch


def random_state(device: torch.device) -> dict[str, Any]:
    """Return the states of the generators of Python, NumPy and torch, also of torch's generator on a GPU."""
    name, keys, *rest = np.random.get_state(legacy=True)
    found: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    found["numpy"] = (name, torch.tensor(np.asarray(keys, np.int64)), *rest)
    if device.type != "cpu":
        found["device"] = torch.get_device_module(device).get_rng_state(device)
    return found


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Set every generator to the state that `random_state` returned."""
    random.setstate(state["python"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if device.type != "cpu" and "device" in state:  # a run may move from a CPU to a GPU
        torch.get_device_module(device).set_rng_state(state["device"], device)
