"""Recipes: one TOML file per table of the papers, with each model's hyper-parameters, number and variants."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
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
    """One table of a paper: its task, each row's model and printed number, the variants and scales of training.

    A row is named as its model, unless it says which one `model` is; the rest of it are the model's arguments, but for

    - `paper`, the number that the paper prints, and `paper_epochs`, after how many epochs, where it prints that;
    - `task`, where it is not the recipe's, and `task_arguments`, such as its `length`.

    A variant is a way to train, `like` another but for what it says itself: its `model` or `rows` stand for the whole
    of the other's. It may name another `task`. A scale changes the task, the settings and the sizes of a variant:
    "full" nothing, "cpu" for an hour or so on a core, "quick" for a minute on data that need no download. Both may hold
    settings, `task_arguments.…`, arguments `model.…` for every row whose model has them, and `rows.<row>.…` for one
    row. `sweep` holds, by setting or argument, the values that the paper chose from by validation; a variant or a
    scale has its own where these are none for its optimiser.
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
        """The number that the paper prints in a row; None where it has none."""
        return self._row(row).get("paper")

    def paper_epochs(self, row: str) -> int | None:
        """The epochs that the paper trained a row for, where its table prints them."""
        return self._row(row).get("paper_epochs")

    def sweep_values(self, variant: str | None = None, scale: str = "full") -> dict[str, list[Any]]:
        """What to choose from by validation: the scale's own values, else the variant's, else the recipe's.

        Raises:
            ValueError: for an unknown variant or scale.
        """
        variant = check_choice("variant", self.default_variant if variant is None else variant, self.variants)
        check_choice("scale", scale, ["full", *self.scales])
        own = self.variants[variant].get("sweep", self.sweep)
        return dict(self.scales.get(scale, {}).get("sweep", own))

    def plan(
        self,
        row: str,
        variant: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        scale: str = "full",
    ) -> "Plan":
        """What to train, and how: a row's hyper-parameters and settings, after variant, scale and `overrides`.

        Raises:
            ValueError: for an unknown row, variant, scale or key (the nearest is suggested), or a bad value.
        """
        variant = check_choice("variant", self.default_variant if variant is None else variant, self.variants)
        check_choice("scale", scale, ["full", *self.scales])
        given = dict(overrides or {})
        parts = self._parts(row, variant, scale, given.get("recurrent"))
        for key in given:
            check_choice("key", key, [*parts.of_model, *parts.of_task, *(f.name for f in fields(Settings))])
        told = parts.changed_by(given, variant)
        for key, value in told.items():
            parts.place(key)[key] = value
        settings, arguments = Settings(**parts.settings), parts.task_arguments
        if settings.carry and "context" in parts.of_task:  # what came before is in the state
            if given.get("context", 0) != 0:
                raise ValueError(f"context: expected 0 where a text is carried, got {given['context']!r}")
            arguments["context"] = 0
        # one and the same run has one name: what a row has anyway is no change
        name = variant + "".join(f"+{as_setting(key, value)}" for key, value in sorted(told.items()))
        return Plan(self, row, parts.model, parts.task, name, scale, parts.hyperparameters, settings, arguments)

    def _parts(self, row: str, variant: str, scale: str, recurrent: str | None) -> "_Parts":
        """What a row's printed line, a variant and a scale say, each over what was said before it."""
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
        for layer in layers:  # each may change every row whose model has the argument
            hyperparameters |= {k: v for k, v in layer.pop("model", {}).items() if k in of_model}
            hyperparameters |= self._of_rows(layer.pop("rows", {})).get(row, {})
            arguments |= layer.pop("task_arguments", {})
        if task != own_task:  # the other task's arguments may be none of this one's
            arguments = {k: v for k, v in arguments.items() if k in of_task}
        return _Parts(model, task, hyperparameters, layers[0] | layers[1], arguments, of_model, of_task)

    def _of_rows(self, rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for row in rows:
            check_choice("rows", row, self.models)
        return rows

    def _row(self, row: str) -> dict[str, Any]:
        return self.models[check_choice("model", row, self.models)]


@dataclass(frozen=True)
class Plan:
    """One row of a recipe with everything decided but the seed."""

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
    """What is said of a run before overrides, each key in one of three places; which keys its model and task know."""

    model: str
    task: str
    hyperparameters: dict[str, Any]
    settings: dict[str, Any]
    task_arguments: dict[str, Any]
    of_model: dict[str, Parameter]
    of_task: dict[str, Parameter]

    def place(self, key: str) -> dict[str, Any]:
        """Where a key belongs: to the model, to the task or to the training."""
        if key in self.of_model:
            return self.hyperparameters
        return self.task_arguments if key in self.of_task else self.settings

    def changed_by(self, given: Mapping[str, Any], variant: str) -> dict[str, Any]:
        """Those of the given values that the run has not anyway, be it by default."""
        own = {key: one.default for key, one in (self.of_task | self.of_model).items() if one.default is not one.empty}
        own |= asdict(_settings(self.settings, variant)) | self.task_arguments | self.hyperparameters
        return {key: value for key, value in given.items() if key not in own or not _same(own[key], value)}


def _settings(table: Mapping[str, Any], variant: str) -> Settings:
    for key in table:
        check_choice(f"a setting of the variant {variant}", key, [one.name for one in fields(Settings)])
    for one in fields(Settings):
        if one.default is MISSING and one.name not in table:
            raise ValueError(f"variant {variant}: expected a value of {one.name}, got none")
    return Settings(**table)


def _same(own: Any, given: Any) -> bool:
    """Whether a value is the one that a row has anyway; 1 is none of true."""
    return own == given and isinstance(own, bool) == isinstance(given, bool)


def as_setting(key: str, value: Any) -> str:
    """`key=value` as it is typed after `--set`: true and false as in TOML, 1.0 as 1, for a run has one name."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def parse_setting(text: str) -> tuple[str, Any]:
    """`key=value`, the value read as TOML reads it (numbers, true, lists), else as text; true and false in any case.

    Raises:
        ValueError: if there is no `=`.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ValueError(f"--set: expected key=value, got {text!r}")
    if value.strip().lower() in ("true", "false"):  # TOML knows neither True, as Python writes it, nor TRUE
        return key, value.strip().lower() == "true"
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def as_typed_together(point: Mapping[str, Any]) -> str:
    """Several settings, as `as_setting` has each, with a blank between them."""
    return " ".join(as_setting(key, value) for key, value in point.items())


def recipe_names() -> list[str]:
    """Every recipe that ships with the package."""
    folder = resources.files("rtx.training") / "recipes"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def load_recipe(name: str) -> Recipe:
    """Read a recipe.

    Raises:
        ValueError: if there is none of that name; the nearest is suggested.
    """
    check_choice("recipe", name, recipe_names())
    text = (resources.files("rtx.training") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    table["variants"] = {name: _resolved(table["variants"], name) for name in table["variants"]}
    table["default_variant"] = check_choice("variant", table.pop("variant"), table["variants"])
    return Recipe(name=name, **table)


def _resolved(variants: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """A variant with what it takes over from the one that it is like."""
    own = dict(variants[name])
    other = own.pop("like", None)
    return own if other is None else _resolved(variants, check_choice("like", other, variants)) | own
