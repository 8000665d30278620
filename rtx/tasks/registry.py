"""Tasks by the name that recipes and the command line use."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from rtx.nn.validate import check_choice
from rtx.tasks import images, music, summarization, text, toy, translation
from rtx.tasks.task import Task

TASKS: dict[str, Callable[..., Task]] = {
    "add": toy.add,
    "multiply": toy.multiply,
    "temporal-order": toy.temporal_order,
    "copy-memory": toy.copy_memory,
    "locality-dial": toy.locality_dial,
    "look-up": toy.look_up,
    "digits": images.digits,
    "permuted-digits": partial(images.digits, permuted=True),
    "mnist": images.mnist,
    "mnist-14": partial(images.mnist, side=14),
    "permuted-mnist": partial(images.mnist, permuted=True),
    "music": music.own_music,
    "chorales": music.chorales,
    "nottingham": partial(music.published, name="nottingham"),
    "jsb": partial(music.published, name="jsb"),
    "piano": partial(music.published, name="piano"),
    "muse": partial(music.published, name="muse"),
    "text": text.own_text,
    "characters": text.characters,
    "words": text.words,
    "ptb-char": text.ptb_char,
    "ptb-char-eos": partial(text.ptb_char, form="eos"),
    "ptb-word": text.ptb_word,
    "dates": translation.dates,
    "multi30k": translation.multi30k,
    "iwslt14-mixer": translation.iwslt14,
    "docstrings": summarization.docstrings,
    "gigaword": summarization.gigaword,
}


def task_by_name(name: str, **arguments: Any) -> Task:
    """Return the task of that name. `arguments` are the task's own, such as `length=100`."""
    known = task_arguments(name)
    for argument in arguments:
        check_choice(f"argument of {name}", argument, known)
    task = TASKS[name](**arguments)
    object.__setattr__(task, "again", partial(task_by_name, name, **arguments))  # of a frozen dataclass
    return task


def task_arguments(name: str) -> dict[str, inspect.Parameter]:
    """Return the arguments that a task takes, by name, without those that its name has fixed."""
    make = TASKS[check_choice("task", name, TASKS)]
    fixed = getattr(make, "keywords", {})
    return {k: p for k, p in inspect.signature(make).parameters.items() if k not in fixed}
