"""What should be trained, chosen from the recipes: as a plan, and as the command line that runs it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rtx.tasks import data
from rtx.training.recipe import Plan, as_setting, load_recipe

BUNDLED = {
    "add": "ffa-add",
    "multiply": "ffa-multiply",
    "temporal-order": "ffa-order",
    "copy-memory": "copy-memory",
    "locality-dial": "locality-dial",
    "digits": "mnist",
    "permuted-digits": "permuted-mnist",
    "chorales": "jsb",
    "characters": "ptb-char",
    "words": "ptb-word",
    "dates": "multi30k",
    "docstrings": "headlines",
}
"""Tasks that need no download, and the recipe whose scale "quick" is about each."""

DOWNLOADED = ("mnist", "jsb", "nottingham", "ptb-word", "multi30k")
"""Recipes that have a scale "cpu", and a data set of the same name."""

SETTINGS = ("learning_rate", "batch_size", "epochs")


@dataclass(frozen=True)
class Choice:
    """A row of a recipe, a scale, whatever differs from them, and a seed.

    Args:
        recipe, row, scale: as `rtx train` takes them.
        overrides: settings, arguments of the model or of the task, by name.
        seed: of weights, order and dropout.
    """

    recipe: str
    row: str
    scale: str = "quick"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def plan(self) -> Plan:
        """Everything decided.

        Raises:
            ValueError: for an unknown name (the nearest is suggested) or a bad value.
        """
        return load_recipe(self.recipe).plan(self.row, overrides=self.overrides, scale=self.scale)

    def command(self) -> str:
        """The line to type in a terminal. It trains the same and adds the run to the ledger."""
        words = ["rtx", "train", self.recipe, self.row, "--scale", self.scale, "--seed", str(self.seed)]
        for key, value in self.overrides.items():
            words += ["--set", as_setting(key, value)]
        return shlex.join(words)


@cache
def usual(recipe: str, row: str, scale: str) -> dict[str, Any]:
    """What can be changed, and what it is if it is not: the seed, some settings, and the arguments of the model."""
    plan = Choice(recipe, row, scale).plan()
    return {"seed": 0} | {name: getattr(plan.settings, name) for name in SETTINGS} | plan.hyperparameters


@cache
def offered() -> dict[str, tuple[str, str]]:
    """Task → recipe and scale: the bundled ones, and those whose data are on this machine. Nothing is downloaded."""
    there = [name for name in DOWNLOADED if all(file.state == "verified" for file in data.check(name))]
    return {task: (recipe, "quick") for task, recipe in BUNDLED.items()} | {name: (name, "cpu") for name in there}


@cache
def rows(recipe: str, scale: str) -> list[str]:
    """The rows of a recipe that differ at this scale: of those that are the same run the first."""
    distinct: dict[str, str] = {}
    for row in load_recipe(recipe).models:
        plan = load_recipe(recipe).plan(row, scale=scale)
        distinct.setdefault(repr((plan.model, plan.hyperparameters, plan.task_arguments, plan.settings)), row)
    return list(distinct.values())
