"""An agenda: the runs that the ledger is to hold, as a TOML file names them."""

import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

from rtx.cli.train import Scale, as_typed
from rtx.evidence.ledger import Result
from rtx.nn.validate import check_flag
from rtx.training.randomness import check_seed
from rtx.training.recipe import as_setting, as_typed_together, load_recipe


@dataclass(frozen=True)
class Group:
    """Runs of a recipe, as an agenda names them: each of `models` with each of `seeds` and of the values in `set`.

    Args:
        recipe, models, variant, seeds: as of `rtx train`; the variant is the recipe's default if not given.
        set: lists of values, by setting or hyper-parameter.
        sweep: choose by validation, of the recipe's `sweep_values`.

    Raises:
        ValueError: if one of them cannot be.
    """

    recipe: str
    models: list[str]
    variant: str | None = None
    seeds: list[int] = field(default_factory=lambda: [0])
    set: dict[str, list[Any]] = field(default_factory=dict)
    sweep: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.set, dict):
            raise ValueError(f"set: expected a table of lists, got {self.set!r}")
        for name, values in (("models", self.models), ("seeds", self.seeds), *self.set.items()):
            if not isinstance(values, list) or not values:
                raise ValueError(f"{name}: expected a list with something in it, got {values!r}")
        for seed in self.seeds:
            check_seed("seeds", seed)
        check_flag("sweep", self.sweep)
        if self.sweep and self.set:
            raise ValueError("set: a sweep takes the recipe's values, expected none beside it")


@dataclass(frozen=True)
class Entry:
    """One run of an agenda.

    Args:
        recipe: whose table it belongs to.
        words: what to call `rtx` with.
        variants: as the ledger names the run, or, of a sweep, each of its points, one of which it chooses.
        points: the settings of each point of a sweep, as the ledger has them.
    """

    recipe: str
    words: list[str]
    variants: list[str]
    points: tuple[str, ...] = ()

    def __str__(self) -> str:
        return shlex.join(self.words)

    def is_made_by(self, run: Result) -> bool:
        """Whether it is this one, in whatever order its settings were typed, or, of a sweep, what it chose."""
        made, asked = shlex.split(run.command)[2:], self.words[1:]  # a sweep's run is entered as `rtx train`
        same = run.variant in self.variants and _but_settings(made) == _but_settings(asked)
        return same and set(run.chosen_from) == set(self.points)


def _but_settings(words: list[str]) -> list[str]:
    """A command's words without its settings and its variant, which a run's variant names, too; and without --test.

    Nor with `--devices 1`, which makes the same run on a machine with several.
    """
    kept, left = [], iter(words)
    for word in left:
        if word in ("--set", "--variant", "--devices"):
            value = next(left)
            kept += [word, value] if word == "--devices" and value != "1" else []
        elif word != "--test":
            kept.append(word)
    return kept


def read_agenda(path: Path, scale: Scale = Scale.full, epochs: int | None = None) -> list[Entry]:
    """An agenda's runs in its order: all seeds of a model, then the next model.

    Raises:
        ValueError: naming the file, if it is no agenda, or a recipe, a model, a variant or a setting is unknown, or a
            run is named twice.
        OSError: if it cannot be read.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        if set(table) != {"runs"} or not isinstance(table["runs"], list):
            raise ValueError(f"expected [[runs]] and nothing else, got {', '.join(table) or 'nothing'}")
        entries = [entry for runs in table["runs"] for entry in _entries(_group(runs), scale, epochs)]
        named = set()
        for entry in entries:
            meant = (entry.recipe, *_but_settings(entry.words), *entry.variants)
            if meant in named:
                raise ValueError(f"expected each run once, got twice: {entry}")
            named.add(meant)
        return entries
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _group(table: Any) -> Group:
    known = {f.name for f in fields(Group)}
    got = sorted(table) if isinstance(table, dict) else table
    if not isinstance(table, dict) or not {"recipe", "models"} <= set(table) <= known:
        raise ValueError(f"[[runs]]: expected recipe, models, and any of {sorted(known)}, got {got}")
    return Group(**table)


def _entries(group: Group, scale: Scale, epochs: int | None) -> Iterator[Entry]:
    recipe = load_recipe(group.recipe)
    values = recipe.sweep_values(group.variant, scale.value) if group.sweep else group.set
    if group.sweep and not values:
        raise ValueError(f"sweep: recipe {recipe.name} names no values to choose from")
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    for model in group.models:
        variants = [recipe.plan(model, group.variant, point, scale.value).variant for point in points]
        for seed in group.seeds:
            if group.sweep:
                words = ["sweep", *_words(group, model, {}, scale, seed, epochs)[1:], "--test"]
                yield Entry(recipe.name, words, variants, tuple(map(as_typed_together, points)))
                continue
            for point, variant in zip(points, variants, strict=True):
                yield Entry(recipe.name, _words(group, model, point, scale, seed, epochs), [variant])


def _words(group: Group, model: str, point: dict[str, Any], scale: Scale, seed: int, epochs: int | None) -> list[str]:
    settings = [as_setting(key, value) for key, value in point.items()]
    return shlex.split(as_typed(group.recipe, model, group.variant, scale, seed, epochs, settings))[1:]
