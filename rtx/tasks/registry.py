"""Tasks by the name that recipes and the command line use."""

from collections.abc import Callable
from functools import partial

from rtx.nn.validate import check_choice
from rtx.tasks import images, music, toy
from rtx.tasks.task import Task

TASKS: dict[str, Callable[[], Task]] = {
    "add": toy.add,
    "multiply": toy.multiply,
    "digits": images.digits,
    "mnist": images.mnist,
    "permuted-mnist": partial(images.mnist, permuted=True),
    "chorales": music.chorales,
    "nottingham": music.nottingham,
}


def task_by_name(name: str) -> Task:
    """The task of that name, with its default settings.

    Raises:
        ValueError: if there is none; the nearest name is suggested.
    """
    return TASKS[check_choice("task", name, TASKS)]()
