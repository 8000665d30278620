"""Commands that repeat a run, and lists of runs that the ledger should have."""

import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rtx.checks import check_seed
from rtx.evidence.ledger import Result, option
from rtx.training.recipe import as_setting, as_typed_together, load_recipe


def as_typed(
    recipe: str,
    model: str,
    variant: str | None,
    scale: str,
    seed: int,
    epochs: int | None,
    settings: list[str],
    more: list[str],
) -> str:
    """Return the command that repeats a run. It has no options for folders and resuming, which change no number."""
    words = ["rtx", "train", recipe, model]
    words += ["--variant", variant] if variant else []
    words += ["--scale", str(scale)] if scale != "full" else []
    words += ["--seed", str(seed)]
    words += ["--epochs", str(epochs)] if epochs else []
    words += [word for setting in settings for word in ("--set", setting)]
    return shlex.join([*words, *more])


@dataclass(frozen=True)
class Entry:
    """One run of a list, or one sweep."""

    row: tuple[str, str, str, int]  # recipe, model, scale and seed
    command: str  # makes the run
    variants: tuple[str, ...]  # that the ledger's run may have; a sweep chooses one of several
    points: frozenset[str] = frozenset()  # the settings of each point of a sweep, as the ledger writes them

    def is_made_by(self, run: Result) -> bool:
        """Return whether a run of the ledger is this one. Of a sweep, the ledger has the run that it chose."""
        same_row = self.row == (run.recipe, run.model, run.scale, run.seed) and run.variant in self.variants
        only_typed = ("--epochs", "--precision")  # what a result has in its command only
        same_options = all(option(run.command, flag) == option(self.command, flag) for flag in only_typed)
        return same_row and same_options and self.points == set(run.chosen_from)


def read_agenda(path: Path, scale: str = "full", epochs: int | None = None) -> list[Entry]:
    """Return the runs of a list in its order: all seeds of a model, then the next model."""
    if not path.is_file():
        raise ValueError(f"agenda: expected a file, found none at {path}")
    try:
        groups = tomllib.loads(path.read_text(encoding="utf-8"))["runs"]
        return [entry for group in groups for entry in _entries(scale, epochs, **group)]
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # an unknown key, or another type, is one
        raise ValueError(f"{path}: expected [[runs]] as in results/full-size.toml; {error}") from None


def _entries(
    scale: str,
    epochs: int | None,
    *,
    recipe: str,
    models: list[str],
    variant: str | None = None,
    seeds: Sequence[int] = (0,),
    set: dict[str, list[Any]] | None = None,
    sweep: bool = False,
) -> Iterator[Entry]:
    """Yield the runs of one table of the file: each model with each seed and each combination of the values in `set`.

    With `sweep`, validation chooses among the values of the recipe.
    """
    loaded = load_recipe(recipe)
    values = loaded.sweep_values(variant, scale) if sweep else set or {}
    if sweep and set:
        raise ValueError(f"sweep: expected no `set` beside it for {recipe}, got {set}")
    if sweep and not values:
        raise ValueError(f"sweep: the recipe {recipe} names no values to choose from")
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    for model, seed in product(models, seeds):
        row, how = (recipe, model, scale, check_seed("seeds", seed)), (recipe, model, variant, scale, seed, epochs)
        variants = [loaded.plan(model, variant, point, scale).variant for point in points]
        if sweep:
            command = as_typed(*how, [], ["--test"]).replace("rtx train", "rtx sweep", 1)
            yield Entry(row, command, tuple(variants), frozenset(map(as_typed_together, points)))
            continue
        for point, made in zip(points, variants, strict=True):
            yield Entry(row, as_typed(*how, [as_setting(*pair) for pair in point.items()], []), (made,))
