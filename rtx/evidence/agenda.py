"""Commands of runs: as the ledger records them, and as a TOML file lists the runs that the ledger should have."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rtx.evidence.ledger import Result
from rtx.nn.validate import check_flag
from rtx.training.randomness import check_seed
from rtx.training.recipe import as_setting, as_typed_together, load_recipe

# what a run's variant says, too; what a sweep adds; and one device, which makes the same run
NOT_COMPARED = r""" --(set|variant) ('[^']*'|"[^"]*"|\S)+| --test$| --devices 1(?!\S)"""


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
    """One run of the list.

    Args:
        recipe: whose table it belongs to.
        command: what makes it.
        variants: those that the ledger's run may have. A sweep chooses one of several.
        points: the settings of each point of a sweep, as the ledger has them.
    """

    recipe: str
    command: str
    variants: list[str]
    points: list[str]

    def is_same(self, command: str, variants: list[str], points: list[str]) -> bool:
        """Whether a command makes this run, in whatever order its settings were typed."""
        typed = [re.sub(NOT_COMPARED, "", one).split()[2:] for one in (command, self.command)]
        return typed[0] == typed[1] and set(variants) <= set(self.variants) and set(points) == set(self.points)

    def is_made_by(self, run: Result) -> bool:
        """Whether a run of the ledger is this one. The ledger has the run that a sweep chose."""
        return self.is_same(run.command, [run.variant], [*run.chosen_from])


def read_agenda(path: Path, scale: str = "full", epochs: int | None = None) -> list[Entry]:
    """Return the runs of a list in its order: all seeds of a model, then the next model.

    Raises:
        ValueError: naming the file, if it is not such a list, or names a run twice.
        OSError: if it cannot be read.
    """
    entries: list[Entry] = []
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        if set(table) != {"runs"}:
            raise ValueError(f"expected [[runs]] and nothing else, got {', '.join(table) or 'nothing'}")
        for entry in (entry for group in table["runs"] for entry in _entries(scale, epochs, **group)):
            if any(one.is_same(entry.command, entry.variants, entry.points) for one in entries):
                raise ValueError(f"expected each run once, got twice: {entry.command}")
            entries.append(entry)
    except (AttributeError, TypeError, ValueError) as error:  # the first two: an unknown key, or another type
        raise ValueError(f"{path}: {error}") from None
    return entries


def _entries(
    scale: str,
    epochs: int | None,
    *,
    recipe: str,
    models: list[str],
    variant: str | None = None,
    seeds: list[int] | None = None,
    set: dict[str, list[Any]] | None = None,
    sweep: bool = False,
) -> Iterator[Entry]:
    """One table of the file: each model with each seed and each combination of the values in `set`.

    With `sweep`, validation chooses among the values of the recipe.
    """
    seeds, values = [0] if seeds is None else seeds, set or {}
    for name, some in (("models", models), ("seeds", seeds), *values.items()):
        if not isinstance(some, list) or not some:
            raise ValueError(f"{name}: expected a list with something in it, got {some!r}")
    loaded = load_recipe(recipe)
    if check_flag("sweep", sweep):
        if values or not loaded.sweep_values(variant, scale):
            raise ValueError(f"sweep: expected values in the recipe {recipe}, and none in the list")
        values = loaded.sweep_values(variant, scale)
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    for model, seed in product(models, seeds):
        row = (recipe, model, variant, scale, check_seed("seeds", seed), epochs)
        variants = [loaded.plan(model, variant, point, scale).variant for point in points]
        if sweep:
            command = as_typed(*row, [], ["--test"]).replace("rtx train", "rtx sweep", 1)
            yield Entry(recipe, command, variants, [*map(as_typed_together, points)])
            continue
        for point, made in zip(points, variants, strict=True):
            settings = [as_setting(key, value) for key, value in point.items()]
            yield Entry(recipe, as_typed(*row, settings, []), [made], [])
