"""`rtx table` and `rtx ledger`: the papers' tables with our numbers, and checks of these numbers."""

import sys
from collections.abc import Sequence
from csv import writer
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rtx.cli.completion import ALL, recipes_or_all, variants
from rtx.cli.fill import fill
from rtx.evidence import tables
from rtx.evidence.ledger import LEDGER
from rtx.training.recipe import Recipe, load_recipe, recipe_names

IN_TWO = {"validation": "vali-\ndation", "parameters": "para-\nmeters"}  # these heads are wider than their numbers

console = Console()
ledger_app = typer.Typer(no_args_is_help=True, help="The finished runs.")
ledger_app.command("fill", epilog="Example: rtx ledger fill results/full-size.toml --max-time 00:09:30")(fill)


Format = StrEnum("Format", ["terminal", "markdown", "csv"])


def table_(
    recipe: Annotated[str, typer.Argument(help='A recipe; "all" prints every table.', autocompletion=recipes_or_all)],
    variant: Annotated[
        str | None, typer.Option(help="Print only the runs of this variant.", autocompletion=variants)
    ] = None,
    every: Annotated[bool, typer.Option("--every", help="Print every line, not one for each model.")] = False,
    format: Annotated[Format, typer.Option(help="How to print it. CSV has every line.")] = Format.terminal,
    markdown: Annotated[bool, typer.Option("--markdown", help="The same as --format markdown.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="The same as --format csv.")] = False,
    results: Annotated[Path, typer.Option(help="The ledger's folder.")] = LEDGER,
) -> None:
    """Print a paper's table with our numbers beside the paper's. The best score is bold.

    A model has one line: full-size and complete runs come first, then those with most seeds and the best validation.
    """
    if variant is not None and recipe == ALL:
        raise ValueError(f"variant: expected the one recipe that has it, got {recipe}")
    format = Format.csv if csv else Format.markdown if markdown else format
    loaded = [load_recipe(name) for name in (recipe_names() if recipe == ALL else [recipe])]
    empty = [one for one in loaded if recipe == ALL and not any((results / one.name).glob("*.json"))]
    if format is Format.csv:
        typer.echo(",".join(["recipe", *tables.HEADER]))
    for one in loaded:
        if one not in empty:
            _print(one, results, variant, every, format, recipe == ALL)
    if empty:
        typer.echo(f"no runs yet: {', '.join(one.name for one in empty)}", err=True)
    end_if_empty(results)  # without our numbers, a table still has the papers'


@ledger_app.command("check", epilog="Example: rtx ledger check")
def check(results: Annotated[Path, typer.Option(help="The ledger's folder.")] = LEDGER) -> None:
    """Check that every run is whole, and has a commit of the history, today's data, and its own command."""
    end_if_empty(results)
    from rtx.evidence.audit import audit

    faults = audit(results)
    for fault in faults:
        typer.echo(tables.printable(fault), err=True)
    typer.echo(f"{len(list(results.glob('**/*.json')))} runs, {len(faults)} faults")
    if faults:
        raise typer.Exit(1)


def end_if_empty(results: Path) -> None:
    """End with 1 if a folder has no runs, because it may be the wrong folder."""
    if not any(results.glob("*/*.json")):
        typer.echo(f"rtx: no runs in {results.absolute()}; name the ledger's folder by --results", err=True)
        raise typer.Exit(1)


def _print(recipe: Recipe, results: Path, variant: str | None, every: bool, format: Format, titled: bool) -> None:
    found = tables.overview(recipe, results, variant)
    every = every or format is Format.csv
    lines = tables.rows(recipe, results, variant) if every else found.lines
    lines = [tables.Row(*map(tables.printable, line)) for line in lines]
    if format is Format.csv:
        writer(sys.stdout, lineterminator="\n").writerows([recipe.name, *line] for line in lines)
    elif format is Format.terminal:
        _draw(recipe, lines, found.score, set() if every else found.best, tables.HEADER[:-1] if every else tables.SHORT)
    else:
        if titled:
            typer.echo(tables.heading(recipe))
        typer.echo(tables.to_markdown(lines) if every else found._replace(lines=lines).to_markdown())


def _draw(recipe: Recipe, lines: list[tables.Row], score: str, best: set[int], names: Sequence[str]) -> None:
    title = f"{recipe.title} ({recipe.source})\n{score}"
    drawn = Table(title=escape(title), box=SIMPLE_HEAD, padding=0, show_edge=False)
    for name in names:
        drawn.add_column(IN_TWO.get(name, name), no_wrap=name in ("model", "parameters"), min_width=4, overflow="fold")
    for place, line in enumerate(lines):
        broken = line._replace(variant=line.variant.replace("+", " +"))  # a narrow terminal can break the line there
        shown = broken._replace(**{name: escape(getattr(broken, name)) for name in tables.HEADER})
        shown = shown._replace(ours=f"[bold]{shown.ours}[/bold]") if place in best else shown
        drawn.add_row(*(getattr(shown, name) for name in names))
    console.print(drawn)
    # below the table: a processor's name would take half the width of a terminal
    for hardware in sorted({line.hardware for line in lines if line.hardware}):
        models = ", ".join(dict.fromkeys(line.model for line in lines if line.hardware == hardware))
        console.print(f"hardware of {models}: {hardware}", highlight=False, markup=False, emoji=False)
