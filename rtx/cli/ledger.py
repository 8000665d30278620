"""`rtx table` and `rtx ledger`: the recipes' tables with our numbers, checks of these numbers, and missing runs."""

import hashlib
import shlex
import sys
from csv import writer
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rtx.cli import options
from rtx.evidence import tables
from rtx.evidence.agenda import Entry, read_agenda
from rtx.evidence.ledger import LEDGER, read_results
from rtx.training.recipe import Recipe, load_recipe, recipe_names
from rtx.training.timing import countdown, format_time, parse_time

STOPPED = (124, 130, 143)  # exit codes: the time is over, Ctrl-C, SIGTERM
ledger_app = typer.Typer(no_args_is_help=True, help="The finished runs.")


def table_(
    recipe: Annotated[str, typer.Argument(help='A recipe; "all" prints every table.', autocompletion=recipe_names)],
    variant: options.Variant = None,
    every: Annotated[bool, typer.Option("--every", help="Print every line, not one for each model.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, which has every line.")] = False,
    results: options.Results = LEDGER,
) -> None:
    """Print a recipe's table: our numbers beside the paper's, if it has some.

    A model has one line. The order: full size, the recipe's own settings, all its training, most seeds, validation.

    The best score on the same data is bold. Only lines with the scale and the budget of the first line are compared.
    """
    shown = [load_recipe(name) for name in (recipe_names() if recipe == "all" else [recipe])]
    if csv:
        lines = [[one.name, *line] for one in shown for line in tables.rows(one, results, variant)]
        writer(sys.stdout, lineterminator="\n").writerows([["recipe", *tables.HEADER], *lines])
    else:
        for one in shown:
            _print(one, results, variant, every, markdown)
    if not any(results.glob("*/*.json")):  # it may be the wrong folder
        typer.echo(f"rtx: no runs in {results.absolute()}; name the ledger's folder by --results", err=True)
        raise typer.Exit(1)


@ledger_app.command("check", epilog="Example: rtx ledger check")
def check(results: options.Results = LEDGER) -> None:
    """Check each file of the ledger.

    Is it complete, is its commit in the history, are its data those of today, and does its command make this run?
    """
    from rtx.evidence.audit import audit

    faults = audit(results)
    for fault in faults:
        typer.echo(tables.printable(fault), err=True)
    runs = len(list(results.glob("**/*.json")))
    typer.echo(f"{results.absolute()}: {runs or 'no'} runs, {len(faults)} faults")
    raise typer.Exit(1 if faults or not runs else 0)


def _print(recipe: Recipe, results: Path, variant: str | None, every: bool, markdown: bool) -> None:
    found = tables.overview(recipe, results, variant)
    if every:
        found = found._replace(lines=tables.rows(recipe, results, variant), best=set())
    if markdown:
        typer.echo(f"\n## {recipe.title} ({recipe.source})\n")
        typer.echo(found.to_markdown())
        return
    drawn = Table(title=f"{recipe.title} ({recipe.source})\n{found.score}", box=SIMPLE_HEAD, padding=0, show_edge=False)
    for name in tables.SHORT:
        drawn.add_column(name, no_wrap=name in ("model", "parameters"), overflow="fold")
    for place, line in enumerate(found.lines):
        line = line._replace(variant=line.variant.replace("+", " +"))  # a narrow terminal can break the line there
        best = "bold" if place in found.best else ""
        drawn.add_row(*(Text(getattr(line, name), best if name == "ours" else "") for name in tables.SHORT))
    Console(markup=False).print(drawn)


@ledger_app.command("fill", epilog="Example: rtx ledger fill results/full-size.toml --max-time 00:09:30")
def fill(
    context: typer.Context,
    agenda: Annotated[Path, typer.Argument(help=r"A TOML file of [\[runs]], such as results/full-size.toml.")],
    scale: options.HowMuch = options.Scale.full,
    epochs: options.Epochs = None,
    show: Annotated[bool, typer.Option("--show", help="Only print the commands, and which the ledger has.")] = False,
    max_time: options.MaxTime = None,
    runs: options.Runs = Path("runs"),
    results: options.Results = LEDGER,
) -> None:
    """Make the listed runs that the ledger lacks, in order; a run that was begun goes on.

    A run that fails does not stop the others: its command is printed at the end.

    With --max-time the same command, given again and again, comes to the end in pieces.

    A sweep counts as made when the ledger has a run of any of its points.
    """
    entries, left = read_agenda(agenda, scale.value, epochs), countdown(parse_time(max_time))
    commands = [entry.command for entry in entries]
    lacking = _missing(entries, results)
    if show:
        for command in commands:
            typer.echo(f"{'    ' if command in lacking else 'done'}  {command.removeprefix('rtx ')}")
        return
    typer.echo(f"the ledger has {len(commands) - len(lacking)} of {len(commands)} runs")

    from rtx.training.states import Exploded  # Lightning and Optuna take seconds to import: only here
    from rtx.training.study import Point, SharedStudy

    codes: dict[str, int] = {}

    def work(point: Point) -> tuple[float, dict[str, Any]]:
        words = [*shlex.split(point["run"])[1:], "--runs", str(runs), "--results", str(results)]
        words += ["--resume"] if words[0] == "train" else []  # a sweep always resumes
        if (seconds := left()) is not None:
            words += ["--max-time", format_time(seconds)]
        typer.echo(point["run"])
        try:
            code = context.find_root().command.main(words, standalone_mode=False) or 0
        except (ValueError, OverflowError, OSError, MemoryError) as error:  # as in `rtx.cli.main`
            typer.echo(tables.printable(f"rtx: {error or type(error).__name__}"), err=True)
            code = 1
        codes[point["run"]] = code
        if code in STOPPED:
            raise typer.Exit(code)
        if code:
            raise Exploded(f"exit code {code}")
        return 0.0, {}

    # other processes with the same list share the study
    name = hashlib.sha256("\n".join(commands).encode()).hexdigest()
    shared = SharedStudy(runs / "fill.db", None, f"fill {name}", {"run": commands})
    shared.run(lambda: [{"run": command} for command in _missing(entries, results) if command not in codes], work)
    for command in (failed := [command for command, code in codes.items() if code]):
        typer.echo(f"failed  {command.removeprefix('rtx ')}", err=True)
    raise typer.Exit(1 if failed else 0)


def _missing(entries: list[Entry], results: Path) -> list[str]:
    """Return the commands of the runs that the ledger lacks."""
    ledger = {recipe: [*read_results(recipe, results)] for recipe in {one.row[0] for one in entries}}
    return [one.command for one in entries if not any(map(one.is_made_by, ledger[one.row[0]]))]
