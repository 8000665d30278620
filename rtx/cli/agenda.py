"""`rtx ledger fill`: make the runs that a TOML file lists and the ledger lacks."""

import hashlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from rtx.cli.train import Epochs, HowMuch, MaxTime, Results, Runs, Scale, as_typed, format_time, parse_time
from rtx.evidence.ledger import LEDGER, Result, read_results
from rtx.nn.validate import check_flag
from rtx.training.randomness import check_seed
from rtx.training.recipe import as_setting, as_typed_together, load_recipe
from rtx.training.timing import countdown

STOPPED = (124, 130, 143)  # exit codes: the time is over, Ctrl-C, SIGTERM
NOT_COMPARED = r""" --(set|variant) ('[^']*'|"[^"]*"|\S)+| --devices 1(?!\S)| --test$"""

Agenda = Annotated[Path, typer.Argument(help=r"A TOML file of [\[runs]], such as results/full-size.toml.")]
Show = Annotated[bool, typer.Option("--show", help="Only print the commands, and which the ledger has.")]


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


def read_agenda(path: Path, scale: Scale = Scale.full, epochs: int | None = None) -> list[Entry]:
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
    scale: Scale,
    epochs: int | None,
    *,
    recipe: str,
    models: list[str],
    variant: str | None = None,
    seeds: list[int] = [0],  # noqa: B006
    set: dict[str, list[Any]] = {},  # noqa: B006
    sweep: bool = False,
) -> Iterator[Entry]:
    """One table of the file: each model with each seed and each combination of the values in `set`.

    With `sweep`, validation chooses among the values of the recipe.
    """
    for name, values in (("models", models), ("seeds", seeds), *set.items()):
        if not isinstance(values, list) or not values:
            raise ValueError(f"{name}: expected a list with something in it, got {values!r}")
    loaded = load_recipe(recipe)
    if check_flag("sweep", sweep):
        if set or not loaded.sweep_values(variant, scale.value):
            raise ValueError(f"sweep: expected values in the recipe {recipe}, and none beside them")
        set = loaded.sweep_values(variant, scale.value)
    points = [dict(zip(set, point, strict=True)) for point in product(*set.values())]
    for model, seed in product(models, seeds):
        row = (recipe, model, variant, scale, check_seed("seeds", seed), epochs)
        variants = [loaded.plan(model, variant, point, scale.value).variant for point in points]
        if sweep:
            command = as_typed(*row, []).replace("rtx train", "rtx sweep", 1) + " --test"
            yield Entry(recipe, command, variants, [*map(as_typed_together, points)])
            continue
        for point, made in zip(points, variants, strict=True):
            yield Entry(recipe, as_typed(*row, [as_setting(*one) for one in point.items()]), [made], [])


def fill(
    agenda: Agenda,
    scale: HowMuch = Scale.full,
    epochs: Epochs = None,
    show: Show = False,
    max_time: MaxTime = None,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Make the listed runs that the ledger lacks, in order; a run that was begun goes on.

    A run that fails does not stop the others: its command is printed at the end.

    With --max-time the same command, given again and again, comes to the end in pieces.

    A sweep counts as made when the ledger has a run of any of its points.
    """
    entries, left = read_agenda(agenda, scale, epochs), countdown(parse_time(max_time))

    def missing() -> list[str]:
        ledger = {recipe: [*read_results(recipe, results)] for recipe in {one.recipe for one in entries}}
        return [one.command for one in entries if not any(map(one.is_made_by, ledger[one.recipe]))]

    lacking = missing()
    if show:
        for entry in entries:
            typer.echo(f"{'    ' if entry.command in lacking else 'done'}  {entry.command.removeprefix('rtx ')}")
        return
    typer.echo(f"the ledger has {len(entries) - len(lacking)} of {len(entries)} runs")
    from rtx.training.states import Exploded  # Lightning and Optuna take seconds to import: only here
    from rtx.training.study import Point, SharedStudy

    codes: dict[str, int] = {}

    def make(point: Point) -> tuple[float, dict[str, Any]]:
        command = point["run"]
        typer.echo(command)
        codes[command] = code = _run(command, left(), runs, results)
        if code in STOPPED:
            raise typer.Exit(code)
        if code:
            raise Exploded(f"exit code {code}")
        return 0.0, {}

    commands = [entry.command for entry in entries]
    name = "fill " + hashlib.sha256("\n".join([*commands, str(results)]).encode()).hexdigest()
    shared = SharedStudy(runs / "fill.db", None, name, {"run": commands})
    shared.run(lambda: [{"run": command} for command in missing() if command not in codes], make)
    failed = [command for command, code in codes.items() if code]
    for command in failed:
        typer.echo(f"failed  {command.removeprefix('rtx ')}", err=True)
    if failed:
        raise typer.Exit(1)


def _run(command: str, seconds: float | None, runs: Path, results: Path) -> int:
    """Run one `rtx` command in this process, and return its exit code."""
    from rtx.cli.commands import app

    words = [*shlex.split(command)[1:], "--runs", str(runs), "--results", str(results)]
    if words[0] == "train":  # a sweep always resumes, on one device
        words += ["--resume", *(["--devices", "1"] if torch.cuda.device_count() > 1 else [])]
    words += ["--max-time", format_time(seconds)] if seconds is not None else []
    try:
        return typer.main.get_command(app).main(words, standalone_mode=False) or 0
    except Exception as error:
        typer.echo(f"rtx: {error}", err=True)
        return 2
