"""What Tab offers in a shell after `rtx --install-completion`."""

import tomllib
from importlib import resources

import typer

from rtx.training.recipe import Recipe, load_recipe, recipe_names

ALL = "all"  # `rtx table all` prints the tables of all recipes


def recipes() -> list[tuple[str, str]]:
    """Return every recipe with its title."""
    return [(name, load_recipe(name).title) for name in recipe_names()]


def recipes_or_all() -> list[tuple[str, str]]:
    """Return every recipe and `all`."""
    return [*recipes(), (ALL, "every table")]


def rows(context: typer.Context) -> list[str]:
    """Return the rows of the recipe that was typed before. There are none if it is not a recipe."""
    return [*recipe.models] if (recipe := _typed(context)) else []


def variants(context: typer.Context) -> list[str]:
    """Return the variants of the recipe that was typed before."""
    return [*recipe.variants] if (recipe := _typed(context)) else []


def datasets() -> list[str]:
    """Return every data set."""
    return [*tomllib.loads((resources.files("rtx") / "tasks" / "datasets.toml").read_text(encoding="utf-8"))]


def _typed(context: typer.Context) -> Recipe | None:
    # after an option that waits for its value, the earlier words are in `args`
    name = context.params.get("recipe") or next(iter(context.args), None)
    return load_recipe(name) if name in recipe_names() else None
