"""The tiny recipe, registered for a test."""

import pytest
from tiny_recipe import tiny, tiny_recipe

from rtx.tasks import TASKS, Task
from rtx.training.recipe import Recipe


@pytest.fixture
def tiny_task(monkeypatch) -> Task:
    task = tiny()
    monkeypatch.setitem(TASKS, "tiny", lambda: task)
    return task


@pytest.fixture
def recipe(tiny_task) -> Recipe:
    return tiny_recipe()
