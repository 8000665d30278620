"""A real but tiny recipe: a task whose data are made on the spot, with two models and two variants."""

import pytest
import torch

from rtx.tasks import TASKS, Example, Task
from rtx.tasks.task import Sum, mean_of
from rtx.training.recipe import Recipe


def running_sum(split: str) -> list[Example]:
    """16 sequences of 6 numbers; the target of a step is the sum so far."""
    generator = torch.Generator().manual_seed({"train": 0, "validation": 1, "test": 2}[split])
    x = torch.randn(16, 6, 1, generator=generator)
    return [Example(a, b) for a, b in zip(x, x.cumsum(1), strict=True)]


def squared_error(predictions, batch) -> Sum:
    error = (predictions - batch.targets).square()
    return Sum(error.sum(), torch.tensor(error.numel()))


@pytest.fixture
def tiny_task(monkeypatch) -> Task:
    task = Task("tiny", 1, 1, "step", running_sum, squared_error, mean_of(squared_error), "squared error", "min")
    monkeypatch.setitem(TASKS, "tiny", lambda: task)
    return task


@pytest.fixture
def recipe(tiny_task) -> Recipe:
    base = {"epochs": 4, "batch_size": 4, "optimizer": "adam", "learning_rate": 1e-2}
    return Recipe(
        name="tiny",
        title="Running sums",
        source="no paper",
        task="tiny",
        default_variant="plain",
        variants={"plain": base, "pre": base | {"model": {"norm": "pre"}}},
        models={
            "r-transformer": {
                "paper": 0.5,
                "d_model": 8,
                "layers": 1,
                "heads": 2,
                "window": 3,
                "dropout": 0.1,
            },
            "gru": {"d_model": 8},
        },
    )
