"""`rtx ledger fill`: an agenda's runs, one after the other, of which each ends in the ledger."""

import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from rtx.cli.train import Epochs, HowMuch, MaxTime, Results, Runs, Scale, as_typed, parse_time
from rtx.training.ledger import LEDGER, read_results
from rtx.training.recipe import as_setting, load_recipe

STOPPED = (124, 130, 143)  # exit codes of a run that saved: its time was over, Ctrl-C, a polite kill
MARGIN = 20.0  # seconds that a process takes to begin: with fewer left, none is started


@dataclass(frozen=True)
class Group:
    """Runs of a recipe, as an agenda names them: each of `models` with each of `seeds` and of the values in `set`.

    Args:
        recipe, models, variant, seeds: as of `rtx train`; the variant is the recipe's default if not given.
        set: lists of values, by setting or hyper-parameter.
        sweep: choose by validation, of the recipe's `sweep_values`.
    """

    recipe: str
    models: list[str]
    variant: str | None = None
    seeds: list[int] = field(default_factory=lambda: [0])
    set: dict[str, list[Any]] = field(default_factory=dict)
    sweep: bool = False


@dataclass(frozen=True)
class Entry:
    """One run of an agenda.

    Args:
        recipe: whose table it belongs to.
        words: what to call `rtx` with.
        commands: as the ledger has it, or, of a sweep, as it has each of its points; one of them has been chosen.
    """

    recipe: str
    words: list[str]
    commands: list[str]

    def is_done(self, results: Path) -> bool:
        """Whether the ledger has it."""
        return any(run.command in self.commands for run in read_results(self.recipe, results))


Agenda = Annotated[Path, typer.Argument(help="A TOML file of [[runs]], such as results/full-size.toml.")]
Show = Annotated[bool, typer.Option("--show", help="Only print the commands, and which the ledger has.")]


def fill(
    agenda: Agenda,
    scale: HowMuch = Scale.full,
    epochs: Epochs = None,
    show: Show = False,
    max_time: MaxTime = None,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Make an agenda's runs that the ledger lacks, in order; one that was begun goes on.

    Each is a process of its own; one that fails is named at the end. With --max-time the same command, given again and
    again, comes to the end in pieces.
    """
    entries, until = read_agenda(agenda, scale, epochs), parse_time(max_time)
    begin, failed = time.monotonic(), 0
    for entry in entries:
        if done := entry.is_done(results):
            typer.echo(f"done  {shlex.join(entry.words)}")
        elif show:
            typer.echo(f"      {shlex.join(entry.words)}")
        if done or show:
            continue
        left = None if until is None else until - (time.monotonic() - begin)
        if left is not None and left < MARGIN:
            raise typer.Exit(STOPPED[0])
        code = _run(entry, left, runs, results)
        if code in STOPPED:
            raise typer.Exit(code)
        failed += code != 0
    if not show:
        typer.echo(f"{len(entries)} runs, {failed} failed")
    if failed:
        raise typer.Exit(1)


def _run(entry: Entry, seconds: float | None, runs: Path, results: Path) -> int:
    """The exit code of the run, in a process of its own."""
    words = [*entry.words, "--runs", str(runs), "--results", str(results)]
    words += ["--resume"] if entry.words[0] == "train" else []  # a sweep always does
    words += ["--max-time", time.strftime("%H:%M:%S", time.gmtime(seconds))] if seconds is not None else []
    typer.echo(f"      {shlex.join(entry.words)}")
    return subprocess.run([sys.executable, "-c", "from rtx.cli import main; main()", *words], check=False).returncode


def read_agenda(path: Path, scale: Scale = Scale.full, epochs: int | None = None) -> list[Entry]:
    """An agenda's runs in its order: all seeds of a model, then the next model.

    Raises:
        ValueError: naming the file, if it is no agenda, or a recipe, a model, a variant or a setting is unknown.
        OSError: if it cannot be read.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        if set(table) != {"runs"} or not isinstance(table["runs"], list):
            raise ValueError(f"expected [[runs]] and nothing else, got {', '.join(table) or 'nothing'}")
        return [entry for runs in table["runs"] for entry in _entries(_group(runs), scale, epochs)]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _group(table: dict[str, Any]) -> Group:
    known = {f.name for f in fields(Group)}
    if not {"recipe", "models"} <= set(table) <= known:
        raise ValueError(f"[[runs]]: expected recipe, models, and any of {sorted(known)}, got {sorted(table)}")
    group = Group(**table)
    if not isinstance(group.set, dict):
        raise ValueError(f"set: expected a table of lists, got {group.set!r}")
    lists = {"models": group.models, "seeds": group.seeds, **group.set}
    for name, values in lists.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{name}: expected a list with something in it, got {values!r}")
    if group.sweep and group.set:
        raise ValueError("set: a sweep takes the recipe's values, expected none beside it")
    return group


def _entries(group: Group, scale: Scale, epochs: int | None) -> Iterator[Entry]:
    recipe = load_recipe(group.recipe)
    values = recipe.sweep_values(group.variant, scale.value) if group.sweep else group.set
    if group.sweep and not values:
        raise ValueError(f"sweep: recipe {recipe.name} names no values to choose from")
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    for model in group.models:
        for point in points:
            recipe.plan(model, group.variant, point, scale.value)  # or one clear error, before anything is run
        for seed in group.seeds:
            made = [_command(group, model, point, scale, seed, epochs) for point in points]
            if group.sweep:
                swept = _command(group, model, {}, scale, seed, epochs)
                yield Entry(recipe.name, ["sweep", *shlex.split(swept)[2:], "--test"], made)
            else:
                yield from (Entry(recipe.name, shlex.split(command)[1:], [command]) for command in made)


def _command(group: Group, model: str, point: dict[str, Any], scale: Scale, seed: int, epochs: int | None) -> str:
    settings = [as_setting(key, value) for key, value in point.items()]
    return as_typed(group.recipe, model, group.variant, scale, seed, epochs, settings)
