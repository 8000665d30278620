"""The tiny tasks, registered for a test."""

from functools import cache

import pytest
from tiny_recipe import TASKS as TINY

from rtx.tasks import TASKS, task_by_name


@pytest.fixture
def tiny_tasks(monkeypatch) -> None:
    for name, task in TINY.items():
        monkeypatch.setitem(TASKS, name, task)


@pytest.fixture
def tasks_once(monkeypatch) -> None:
    """Build each task once in a test: the vocabulary of a text takes 0.2 s."""
    monkeypatch.setattr("rtx.tasks.registry.task_by_name", cache(task_by_name))
