"""What is to be trained, chosen from the recipes: as a plan, as the command line that runs it, and as Python code."""

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any

from rtx.tasks import data
from rtx.training.recipe import Plan, as_setting, load_recipe
from rtx.training.settings import Settings

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

DOWNLOADED = {
    "mnist": "mnist",
    "jsb": "jsb",
    "nottingham": "nottingham",
    "ptb-char": "ptb-char",
    "ptb-word": "ptb-word",
    "multi30k": "multi30k",
}
"""Data sets, as `rtx data` calls them, and the recipe whose scale "cpu" trains on each."""


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
        """The line to type in a terminal; it trains the same and adds the run to the ledger."""
        words = ["rtx", "train", self.recipe, self.row, "--scale", self.scale, "--seed", str(self.seed)]
        for key, value in self.overrides.items():
            words += ["--set", as_setting(key, value)]
        return shlex.join(words)

    def code(self) -> str:
        """Python that trains the same, every number in sight, and tests the last weights."""
        plan = self.plan()
        chosen = {f.name: (getattr(plan.settings, f.name), f.default) for f in fields(Settings)}
        unusual = {name: value for name, (value, default) in chosen.items() if default is MISSING or value != default}
        stop = _early_stop(plan.settings)
        return CODE.format(
            imports="from lightning.pytorch.callbacks import EarlyStopping\n" if stop else "",
            seed=self.seed,
            task=_call("task_by_name", repr(plan.task), **plan.task_arguments),
            model=_call("rtx.build", "task", repr(plan.model), **plan.hyperparameters),
            settings=_call("Settings", **unusual),
            trainer=_call("lightning.Trainer", *stop, **_trainer(plan.settings)),
        )


CODE = """\
import lightning
import rtx
{imports}from rtx.tasks import task_by_name
from rtx.training.module import Trainee
from rtx.training.settings import Settings

lightning.seed_everything({seed})
task = {task}
model = {model}
settings = {settings}
trainee = Trainee(task, model, settings, seed={seed})
trainer = {trainer}
trainer.fit(trainee)
trainer.test(trainee)  # the last weights; `rtx train` tests those that validated best
"""


@cache
def offered() -> dict[str, tuple[str, str]]:
    """Task → recipe and scale: the bundled ones, and those whose data are on this machine. Nothing is downloaded."""
    found = {task: (recipe, "quick") for task, recipe in BUNDLED.items()}
    for name, recipe in DOWNLOADED.items():
        if all(file.state == "verified" for file in data.check(name)):
            found[name] = (recipe, "cpu")
    return found


@cache
def rows(recipe: str, scale: str) -> tuple[str, ...]:
    """The rows of a recipe that differ at this scale: of those that are the same run the first."""
    distinct: dict[str, str] = {}
    for row in load_recipe(recipe).models:
        plan = load_recipe(recipe).plan(row, scale=scale)
        distinct.setdefault(repr((plan.model, plan.hyperparameters, plan.task_arguments, plan.settings)), row)
    return tuple(distinct.values())


def _call(name: str, *positional: str, **named: Any) -> str:
    return f"{name}({', '.join([*positional, *(f'{key}={value!r}' for key, value in named.items())])})"


def _early_stop(settings: Settings) -> list[str]:
    if settings.stop_after is None and settings.stop_at is None:
        return []
    stop = {"patience": settings.stop_after or settings.epochs + 1, "stopping_threshold": settings.stop_at}
    called = _call("EarlyStopping", "'validation'", "mode=task.best", **stop)
    return [f"callbacks=[{called}]"]


def _trainer(settings: Settings) -> dict[str, Any]:
    chosen: dict[str, Any] = {"max_epochs": settings.epochs, "accumulate_grad_batches": settings.accumulate}
    if settings.seconds is not None:
        chosen["max_time"] = {"seconds": settings.seconds}
    chosen |= {"devices": 1, "use_distributed_sampler": False, "num_sanity_val_steps": 0}
    return chosen | {"logger": False, "enable_checkpointing": False}
