"""Tasks by the name that recipes and the command line use."""

from collections.abc import Callable

from rtx.nn.validate import check_choice
from rtx.tasks import music
from rtx.tasks.task import Task

TASKS: dict[str, Callable[[], Task]] = {
    "nottingham": music.nottingham,
}


def task_by_name(name: str) -> Task:
    """The task of that name, with its default settings.

    Raises:
        ValueError: if there is none; the nearest name is suggested.
    """
    return TASKS[check_choice("task", name, TASKS)]()
