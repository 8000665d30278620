"""Hours of moving sliders: memory stays where it is.

Every control of every explorer of `EXPLORERS` is moved through its values, over and over. What the first rounds leave,
as caches do, is allowed; what every round after them adds is not. Two hours of a reader who moves a control once a
second are 7,200 changes.
"""

import gc
from itertools import cycle, islice
from typing import Any

import psutil
import pytest
import torch

import rtx
from rtx.lab import explore
from rtx.tasks import task_by_name

QUICK, HOURS = 60, 7_200
ALLOWED = 24  # MB between the warm and the last reading; the allocator's own noise measured here is below 10
EXPLORERS = {
    "window": lambda: explore.window(torch.randn(9, 5)),
    "reach": explore.reach,
    "cost": explore.cost,
    "block": explore.block,
    "xray": lambda: explore.xray(rtx.RNN(4, 2), torch.randn(1, 8, 4)),
    "pooling": lambda: explore.pooling(
        rtx.FeedForwardAttention(), task_by_name("add", length=20, size=100).split("test")[:5]
    ),
}


def moves(explorer: Any) -> list[tuple[str, Any]]:
    """Every control and each of some of its values."""
    found: list[tuple[str, Any]] = []
    for name, control in explorer.controls.items():
        if hasattr(control, "options"):
            values = [option[1] if isinstance(option, tuple) else option for option in control.options]
        elif isinstance(getattr(control, "value", None), bool):
            values = [True, False]
        else:
            step = control.step or (control.max - control.min) / 7
            values = [control.min + i * step for i in range(int((control.max - control.min) / step) + 1)]
            values = [type(control.value)(value) for value in values]
        found += [(name, value) for value in values[:9]]
    return found


def megabytes() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20


def move(name: str, changes: int) -> float:
    """Megabytes that the last three quarters of so many changes have left."""
    explorer = EXPLORERS[name]()
    path, seen, warm = cycle(moves(explorer)), set(), 0.0
    for number, (control, value) in enumerate(islice(path, changes)):
        if number == changes // 4:
            warm = megabytes()
        explorer.set(**{control: value})
        seen.add(explorer.picture.value)
    assert len(seen) > 1  # pictures have changed
    return megabytes() - warm


@pytest.mark.slow
@pytest.mark.parametrize("name", ["window", "xray"])
def test_memory_is_steady(name: str) -> None:
    assert move(name, QUICK) < ALLOWED


@pytest.mark.soak
@pytest.mark.parametrize("name", EXPLORERS)
def test_memory_is_steady_for_two_hours(name: str) -> None:
    assert move(name, HOURS) < ALLOWED
