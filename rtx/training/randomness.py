"""Seeds, and the state of every random number generator that a training step may draw from, as plain values."""

import random
from typing import Any

import numpy as np
import torch

from rtx.nn.validate import is_whole

LARGEST_SEED = 2**32 - 1  # NumPy's generator takes no larger one


def check_seed(name: str, seed: int) -> int:
    """Return `seed` if every generator takes it.

    Raises:
        ValueError: otherwise.
    """
    if not is_whole(seed) or not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"{name}: expected a whole number from 0 to {LARGEST_SEED}, got {seed!r}")
    return int(seed)


def of_process(seed: int, rank: int) -> int:
    """The seed of one of several processes, the run's own in the first."""
    return (seed + 1_000_003 * rank) % (LARGEST_SEED + 1)


def random_state(device: torch.device) -> dict[str, Any]:
    """The states of Python's, NumPy's and torch's generators, and of torch's on `device`, if that has its own."""
    name, keys, *rest = np.random.get_state(legacy=True)
    found: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    found["numpy"] = (name, torch.tensor(np.asarray(keys, np.int64)), *rest)
    if device.type != "cpu":
        found["device"] = torch.get_device_module(device).get_rng_state(device)
    return found


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Put every generator where `random_state` found it; that of a device, if it was found on such a one."""
    random.setstate(state["python"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if device.type != "cpu" and "device" in state:
        torch.get_device_module(device).set_rng_state(state["device"], device)
