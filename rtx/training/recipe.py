"""Recipes: one TOML file for each table, with settings, the models' sizes, and the numbers that a paper prints."""

import ast
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rtx.checks import check_choice
from rtx.training.settings import SETTINGS, Settings, check_setting

RECIPES = Path(__file__).with_name("recipes")
DECIMAL = re.compile(r"[+-]?(\d+\.|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)  # .1 and 1. are no numbers of TOML
NOT_OF_THE_MODEL = ("paper", "paper_epochs", "model", "task", "task_arguments")
NO_SETTINGS = ("task", "task_arguments", "model", "rows", "sweep")


@dataclass(frozen=True)
class Recipe:
    """One table: its task, the model of each row and the number that a paper prints for it, and ways to train.

    A row has the name of its model, unless it gives another name as `model`. Its other entries are arguments of the
    model, except for these:

    - `paper`: the number that the paper prints; `paper_epochs`: the epochs that it trained for, if it prints them;
    - `task`: another task than the recipe's; `task_arguments`: arguments of the task, such as `length`.

    A variant is a way to train. With `like` it takes over another variant; its own `model` and `rows` replace the whole
    tables of the other. A scale changes the task, the settings and the sizes of every variant. "full" changes nothing.
    "cpu" takes 1 to 100 minutes on one core. "quick" takes about a minute and needs no download. Variants and scales
    may hold `task`, settings, `task_arguments.…`, `model.…` for every row whose model has the argument, and
    `rows.<row>.…` for one row. `sweep` holds the values that the paper chose from by validation, by setting or
    argument. A variant or a scale may have its own. `text` is the text of the recipe's file, if there is one.
    """

    name: str
    title: str
    source: str
    task: str
    default_variant: str
    variants: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    scales: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweep: dict[str, list[Any]] = field(default_factory=dict)
    text: str = field(default="", repr=False)

    def paper(self, row: str) -> float | None:
        """Return the number that the paper prints in a row, if there is one."""
        return self._row(row).get("paper")

    def paper_epochs(self, row: str) -> int | None:
        """Return the epochs that the paper trained a row for, if its table prints them."""
        return self._row(row).get("paper_epochs")

    def sweep_values(self, variant: str | None = None, scale: str = "full") -> dict[str, list[Any]]:
        """Return what to choose from by validation: the scale's own values, or the variant's, or the recipe's."""
        own = self.variants[self._variant(variant, scale)].get("sweep", self.sweep)
        return dict(self.scales.get(scale, {}).get("sweep", own))

    def plan(
        self, row: str, variant: str | None = None, overrides: Mapping[str, Any] | None = None, scale: str = "full"
    ) -> "Plan":
        """Return what to train, and how: a row's arguments and settings after variant, scale and `overrides`."""
        variant, given = self._variant(variant, scale), dict(overrides or {})
        self.check_names(row, variant, scale, given)

        from rtx.tasks.build import hyperparameter_names  # it imports torch, which takes seconds
        from rtx.tasks.registry import task_arguments, task_by_name

        printed, task = self.models[row], self.task
        for layer in (printed, self.variants[variant], self.scales.get(scale, {})):
            task = layer.get("task", task)
        model, recurrent = printed.get("model", row), given.get("recurrent", printed.get("recurrent", "lstm"))
        of_task, of_model = task_arguments(task), hyperparameter_names(model, task_by_name(task).per, recurrent)
        for key in given:
            check_choice("--set", key, [*of_model, *of_task, *SETTINGS])
        values = self._values(row, variant, scale, of_model.keys(), of_task.keys())
        before = {key: one.default for key, one in (SETTINGS | of_task | of_model).items()} | values
        # equal runs have equal names: a value that the row has anyway is not part of the name
        changes = {key: value for key, value in given.items() if as_setting(key, before[key]) != as_setting(key, value)}
        plain = {key: ",".join(map(str, one)) if isinstance(one, list) else one for key, one in changes.items()}
        name = variant + "".join(f"+{as_setting(key, value)}" for key, value in sorted(plain.items()))
        values |= changes
        for key, unit in (("vocabulary", "sub-words"), ("least", "words")):
            if key in given and (other := (before | changes).get("unit", unit)) != unit:
                raise ValueError(f"{key}: needs unit={unit}, got {given[key]!r} with unit={other}")
        if values.get("carry") and "context" in of_task:  # the state holds what came before
            if given.get("context", 0) != 0:
                raise ValueError(f"context: expected 0 where a text is carried, got {given['context']!r}")
            values["context"] = 0
        settings = Settings(**{key: value for key, value in values.items() if key in SETTINGS})
        if "anneal_every" in given and settings.anneal is None:
            raise ValueError(f"anneal_every: needs a factor, such as anneal=0.1, got {given['anneal_every']!r}")
        arguments = {key: value for key, value in values.items() if key in of_task}
        sizes = {key: value for key, value in values.items() if key not in of_task and key not in SETTINGS}
        return Plan(self, row, model, task, name, scale, sizes, settings, arguments)

    def check_names(self, row: str, variant: str | None, scale: str, given: Mapping[str, Any]) -> None:
        """Refuse unknown names and wrong settings in `given` before torch is imported."""
        self._row(row)
        self._variant(variant, scale)
        for key, value in given.items():
            if key in SETTINGS:
                check_setting(key, value)
            elif key not in (names := argument_names()):
                near = get_close_matches(key, [*SETTINGS, *names], n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"--set: {key!r} is neither a setting nor an argument of a model or a task{hint}")

    def _values(
        self, row: str, variant: str, scale: str, of_model: Collection[str], of_task: Collection[str]
    ) -> dict[str, Any]:
        """Put a row, a variant and a scale together: each overrides what comes before it."""
        printed = self.models[row]
        values = {k: v for k, v in printed.items() if k not in NOT_OF_THE_MODEL}
        arguments, settings = dict(printed.get("task_arguments", {})), dict[str, Any]()
        for layer in (self.variants[variant], self.scales.get(scale, {})):
            if "task" in layer:  # the former task may have other arguments
                arguments = {k: v for k, v in arguments.items() if k in of_task}
            values |= {k: v for k, v in layer.get("model", {}).items() if k in of_model}
            for name in layer.get("rows", {}):
                check_choice("rows", name, self.models)
            values |= layer.get("rows", {}).get(row, {})
            arguments |= layer.get("task_arguments", {})
            settings |= {k: v for k, v in layer.items() if k not in NO_SETTINGS}
        for key in settings:
            check_choice(f"setting of the variant {variant}", key, SETTINGS)
        return values | arguments | settings

    def _variant(self, variant: str | None, scale: str) -> str:
        check_choice("scale", scale, ["full", *self.scales])
        return check_choice("variant", self.default_variant if variant is None else variant, self.variants)

    def _row(self, row: str) -> dict[str, Any]:
        return self.models[check_choice("model", row, self.models)]


@dataclass(frozen=True)
class Plan:
    """One row of a recipe with everything decided except the seed."""

    recipe: Recipe
    row: str
    model: str
    task: str
    variant: str
    scale: str
    hyperparameters: dict[str, Any]
    settings: Settings
    task_arguments: dict[str, Any] = field(default_factory=dict)


def argument_names() -> set[str]:
    """Return the names of all arguments in the source of the models and the tasks. This does not import torch."""
    package = Path(__file__).parents[1]
    files = [*package.glob("models/*.py"), *package.glob("tasks/**/*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    return {node.arg for node in nodes if isinstance(node, ast.arg)}


def as_setting(key: str, value: Any) -> str:
    """Return `key=value` as it is typed after `--set`, with true and false as in TOML, and 1.0 as 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def parse_setting(text: str) -> tuple[str, Any]:
    """Return key and value of `key=value`. The value is read as TOML (numbers, true, lists), otherwise as text.

    A path is text, also if it looks like a number.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ValueError(f"--set: expected key=value, got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:  # the name of a file that an old archive left in another encoding
        raise ValueError(f"--set: expected UTF-8, as the ledger's files are, got {text!r}; rename the file") from None
    if key == "path" and not value.startswith(("[", '"', "'")):
        return key, value
    if value.strip().lower() in ("true", "false"):  # TOML does not know True, as Python writes it
        return key, value.strip().lower() == "true"
    try:  # a second line and a comment are errors in this place, so nothing of the text is lost
        (table,) = tomllib.loads(f"table = {{value = {value}}}").values()
        (found,) = table.values()
    except ValueError:
        return key, float(value) if DECIMAL.fullmatch(value) else value
    return key, found


def as_typed_together(point: Mapping[str, Any]) -> str:
    """Return several settings, each as `as_setting` writes it, with a space between them."""
    return " ".join(as_setting(key, value) for key, value in point.items())


def recipe_names() -> list[str]:
    """Return the names of the recipes in the package."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def load_recipe(name: str) -> Recipe:
    """Read a recipe of the package."""
    check_choice("recipe", name, recipe_names())
    text = (RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    table["variants"] = {name: _resolved(table["variants"], name) for name in table["variants"]}
    table["default_variant"] = check_choice("variant", table.pop("variant"), table["variants"])
    return Recipe(name=name, **table, text=text)


def _resolved(variants: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Return a variant together with what it takes over from the variant that it is `like`."""
    own = dict(variants[name])
    other = own.pop("like", None)
    return own if other is None else _resolved(variants, check_choice("like", other, variants)) | own
