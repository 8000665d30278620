"""Recipes: one TOML file per table of the papers, with each model's hyper-parameters, number and variants."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from rtx.nn.validate import check_choice, check_positive
from rtx.tasks.build import hyperparameter_names


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Args:
        epochs: passes over the training split.
        batch_size: sequences per update.
        optimizer: "sgd" or "adam".
        learning_rate: at the start.
        reduction: a batch's loss is the "sum" over what is scored, or its "mean".
        clip: largest gradient norm; None leaves gradients as they are.
        anneal: factor on the learning rate when validation has not improved for `patience` epochs; None: constant.
        patience: epochs.
        anneal_every: epochs; if given, the rate is annealed so often, whatever validation says.
        stop_after: epochs without improvement after which training ends; None: never.
    """

    epochs: int
    batch_size: int
    optimizer: str
    learning_rate: float
    reduction: str = "mean"
    clip: float | None = None
    anneal: float | None = None
    patience: int = 3
    anneal_every: int | None = None
    stop_after: int | None = None

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, ("sgd", "adam"))
        check_choice("reduction", self.reduction, ("sum", "mean"))
        for name in ("epochs", "batch_size", "patience", "anneal_every", "stop_after"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        for name in ("learning_rate", "clip", "anneal"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise ValueError(f"{name}: expected a number above 0, got {value!r}")


@dataclass(frozen=True)
class Recipe:
    """One table of a paper: its task, each model's hyper-parameters and printed number, the variants of training."""

    name: str
    title: str
    source: str
    task: str
    scale: str
    default_variant: str
    variants: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]

    def paper(self, model: str) -> float | None:
        """The number that the paper prints for `model`; None where it has none."""
        return self._model(model).get("paper")

    def plan(self, model: str, variant: str | None = None, overrides: Mapping[str, Any] | None = None) -> "Plan":
        """What to train, and how: a model's hyper-parameters and settings, after `overrides`.

        Raises:
            ValueError: for an unknown model, variant or key (the nearest is suggested), or a bad value.
        """
        hyperparameters = {k: v for k, v in self._model(model).items() if k != "paper"}
        variant = variant or self.default_variant
        check_choice("variant", variant, self.variants)
        settings = dict(self.variants[variant])
        known = hyperparameter_names(model)
        of_variant = settings.pop("model", {})  # a variant may change every model that has the argument
        hyperparameters |= {k: v for k, v in of_variant.items() if k in known}
        train = [f.name for f in fields(Settings)]
        for key, value in (overrides or {}).items():
            check_choice("key", key, [*known, *train])
            (hyperparameters if key in known else settings)[key] = value
        changed = "".join(f"+{k}={v}" for k, v in sorted((overrides or {}).items()))
        return Plan(self, model, variant + changed, hyperparameters, Settings(**settings))

    def _model(self, model: str) -> dict[str, Any]:
        return self.models[check_choice("model", model, self.models)]


@dataclass(frozen=True)
class Plan:
    """One model of a recipe with everything decided but the seed."""

    recipe: Recipe
    model: str
    variant: str
    hyperparameters: dict[str, Any]
    settings: Settings


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
    table["default_variant"] = check_choice("variant", table.pop("variant"), table["variants"])
    return Recipe(name=name, **table)
