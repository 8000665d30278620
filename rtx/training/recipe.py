"""Recipes: one TOML file per table of the papers, with the settings, sizes and printed number of each model."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import resources
from inspect import Parameter
from typing import Any

from rtx.nn.validate import check_choice
from rtx.tasks import task_by_name
from rtx.tasks.build import hyperparameter_names
from rtx.tasks.registry import task_arguments
from rtx.training.settings import Settings

NOT_OF_THE_MODEL = ("paper", "paper_epochs", "model", "task", "task_arguments")


@dataclass(frozen=True)
class Recipe:
    """One table of a paper: its task, the model and the printed number of each row, and ways to train.

    A row has the name of its model, unless it gives another name as `model`. Its other entries are arguments of the
    model, except for these:

    - `paper`: the number that the paper prints; `paper_epochs`: the epochs that it trained for, if it prints them;
    - `task`: another task than the recipe's; `task_arguments`: arguments of the task, such as `length`.

    A variant is a way to train. With `like` it takes over another variant; its own `model` and `rows` replace the whole
    tables of the other. A scale changes the task, the settings and the sizes of every variant. "full" changes nothing.
    "cpu" takes about an hour on one core. "quick" takes a minute and needs no download. Variants and scales may hold
    `task`, settings, `task_arguments.…`, `model.…` for every row whose model has the argument, and `rows.<row>.…` for
    one row. `sweep` holds the values that the paper chose from by validation, by setting or argument. A variant or a
    scale may have its own.
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
        self,
        row: str,
        variant: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        scale: str = "full",
    ) -> "Plan":
        """Return what to train, and how: a row's arguments and settings after variant, scale and `overrides`.

        Raises:
            ValueError: for an unknown row, variant, scale or key (the nearest is suggested), or a bad value.
        """
        variant, given = self._variant(variant, scale), dict(overrides or {})
        parts = self._parts(row, variant, scale, given.get("recurrent"))
        for key in given:
            check_choice("key", key, [*parts.of_model, *parts.of_task, *(f.name for f in fields(Settings))])
        changes = parts.changes(given)
        for key, value in changes.items():
            parts.place(key)[key] = value
        settings, arguments = Settings(**parts.settings), parts.task_arguments
        if settings.carry and "context" in parts.of_task:  # the state holds what came before
            if given.get("context", 0) != 0:
                raise ValueError(f"context: expected 0 where a text is carried, got {given['context']!r}")
            arguments["context"] = 0
        # equal runs have equal names: a value that the row has anyway is not part of the name
        name = variant + "".join(f"+{as_setting(key, value)}" for key, value in sorted(changes.items()))
        return Plan(self, row, parts.model, parts.task, name, scale, parts.hyperparameters, settings, arguments)

    def _parts(self, row: str, variant: str, scale: str, recurrent: str | None) -> "_Parts":
        """Put a row, a variant and a scale together. Each overrides what comes before it."""
        printed = self._row(row)
        layers = dict(self.variants[variant]), dict(self.scales.get(scale, {}))
        task = own_task = printed.get("task", self.task)
        for layer in layers:
            task = layer.pop("task", task)
            layer.pop("sweep", None)
        model, of_task = printed.get("model", row), task_arguments(task)
        hyperparameters = {k: v for k, v in printed.items() if k not in NOT_OF_THE_MODEL}
        kind = hyperparameters.get("recurrent", "lstm") if recurrent is None else recurrent
        of_model = hyperparameter_names(model, task_by_name(task).per, kind)
        arguments = dict(printed.get("task_arguments", {}))
        for layer in layers:
            hyperparameters |= {k: v for k, v in layer.pop("model", {}).items() if k in of_model}
            rows = layer.pop("rows", {})
            for name in rows:
                check_choice("rows", name, self.models)
            hyperparameters |= rows.get(row, {})
            arguments |= layer.pop("task_arguments", {})
        if task != own_task:  # the other task may have other arguments
            arguments = {k: v for k, v in arguments.items() if k in of_task}
        settings = layers[0] | layers[1]
        for key in settings:
            check_choice(f"setting of the variant {variant}", key, [one.name for one in fields(Settings)])
        return _Parts(model, task, hyperparameters, settings, arguments, of_model, of_task)

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


@dataclass(frozen=True)
class _Parts:
    """The values of a run before overrides, in three groups, and the names that its model and its task know."""

    model: str
    task: str
    hyperparameters: dict[str, Any]
    settings: dict[str, Any]
    task_arguments: dict[str, Any]
    of_model: dict[str, Parameter]
    of_task: dict[str, Parameter]

    def place(self, key: str) -> dict[str, Any]:
        """Return the group that a key belongs to."""
        if key in self.of_model:
            return self.hyperparameters
        return self.task_arguments if key in self.of_task else self.settings

    def changes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given values that differ from what the run has anyway, also by default."""
        own = asdict(Settings(**self.settings))
        own |= {key: one.default for key, one in (self.of_task | self.of_model).items()}
        own |= self.task_arguments | self.hyperparameters
        return {key: value for key, value in given.items() if as_setting(key, own[key]) != as_setting(key, value)}


def as_setting(key: str, value: Any) -> str:
    """Return `key=value` as it is typed after `--set`, with true and false as in TOML, and 1.0 as 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def parse_setting(text: str) -> tuple[str, Any]:
    """Return key and value of `key=value`. The value is read as TOML (numbers, true, lists), otherwise as text.

    Raises:
        ValueError: if there is no `=`.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ValueError(f"--set: expected key=value, got {text!r}")
    if value.strip().lower() in ("true", "false"):  # TOML does not know True, as Python writes it
        return key, value.strip().lower() == "true"
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def as_typed_together(point: Mapping[str, Any]) -> str:
    """Return several settings, each as `as_setting` writes it, with a space between them."""
    return " ".join(as_setting(key, value) for key, value in point.items())


def recipe_names() -> list[str]:
    """Return the names of the recipes in the package."""
    folder = resources.files("rtx.training") / "recipes"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def load_recipe(name: str) -> Recipe:
    """Read a recipe of the package."""
    check_choice("recipe", name, recipe_names())
    text = (resources.files("rtx.training") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    table["variants"] = {name: _resolved(table["variants"], name) for name in table["variants"]}
    table["default_variant"] = check_choice("variant", table.pop("variant"), table["variants"])
    return Recipe(name=name, **table)


def _resolved(variants: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Return a variant together with what it takes over from the variant that it is `like`."""
    own = dict(variants[name])
    other = own.pop("like", None)
    return own if other is None else _resolved(variants, check_choice("like", other, variants)) | own
