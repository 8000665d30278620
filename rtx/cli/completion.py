"""What Tab offers in a shell (`rtx --install-completion`): recipes, and the rows and variants of the one typed."""

import typer

from rtx.tasks.data import DATASETS
from rtx.training.recipe import Recipe, load_recipe, recipe_names

ALL = "all"  # for `rtx table`: every recipe's


def recipes() -> list[tuple[str, str]]:
    """Every recipe, with its title."""
    return [(name, load_recipe(name).title) for name in recipe_names()]


def recipes_or_all() -> list[tuple[str, str]]:
    """The same and `all`."""
    return [*recipes(), (ALL, "every table")]


def rows(context: typer.Context) -> list[str]:
    """The rows of the recipe that was typed before; none if it is no recipe."""
    return [*recipe.models] if (recipe := _typed(context)) else []


def variants(context: typer.Context) -> list[str]:
    """Its variants."""
    return [*recipe.variants] if (recipe := _typed(context)) else []


def datasets() -> list[str]:
    """Every data set."""
    return [*DATASETS]


def _typed(context: typer.Context) -> Recipe | None:
    # behind an option that waits for its value, words are not parameters yet
    name = context.params.get("recipe") or next(iter(context.args), None)
    return load_recipe(name) if name in recipe_names() else None
