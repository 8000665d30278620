"""The tiny recipe, registered for a test."""

from functools import cache

import pytest
from tiny_recipe import TASKS as TINY
from tiny_recipe import tiny, tiny_recipe

from rtx.tasks import TASKS, Task, task_by_name
from rtx.training.recipe import Recipe


@pytest.fixture
def tiny_task(monkeypatch) -> Task:
    task = tiny()
    monkeypatch.setitem(TASKS, "tiny", lambda: task)
    return task


@pytest.fixture
def recipe(tiny_task) -> Recipe:
    return tiny_recipe()


@pytest.fixture
def tiny_tasks(monkeypatch) -> None:
    for name, task in TINY.items():
        monkeypatch.setitem(TASKS, name, task)


@pytest.fixture
def tasks_once(monkeypatch) -> None:
    """Build each task once in a test: the vocabulary of a text takes 0.2 s."""
    monkeypatch.setattr("rtx.training.recipe.task_by_name", cache(task_by_name))
