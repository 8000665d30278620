"""`rtx table` and `rtx ledger`: the papers' tables with our numbers, and checks of these numbers."""

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
from rtx.evidence.audit import audit
from rtx.evidence.ledger import LEDGER
from rtx.training.recipe import Recipe, load_recipe, recipe_names

IN_TWO = {"validation": "vali-\ndation", "parameters": "para-\nmeters"}  # these heads are wider than their numbers

console = Console()
ledger_app = typer.Typer(no_args_is_help=True, help="The finished runs.")
ledger_app.command("fill", epilog="Example: rtx ledger fill results/full-size.toml --max-time 00:09:30")(fill)


Format = StrEnum("Format", ["terminal", "markdown", "html"])


def table_(
    recipe: Annotated[str, typer.Argument(help='A recipe; "all" prints every table.', autocompletion=recipes_or_all)],
    variant: Annotated[
        str | None, typer.Option(help="Print only the runs of this variant.", autocompletion=variants)
    ] = None,
    format: Annotated[Format, typer.Option(help="How to print it.")] = Format.terminal,
    results: Annotated[Path, typer.Option(help="The ledger's folder.")] = LEDGER,
) -> None:
    """Print a paper's table with our numbers beside the paper's."""
    if variant is not None and recipe == ALL:
        raise ValueError(f"variant: expected the one recipe that has it, got {recipe}")
    loaded = [load_recipe(name) for name in (recipe_names() if recipe == ALL else [recipe])]
    for one in loaded:
        if recipe == ALL and format is not Format.terminal:
            typer.echo(tables.heading(one, format is Format.html))
        _print(one, tables.rows(one, results, variant), format)
    end_if_empty(results)  # without our numbers, a table still has the papers'


@ledger_app.command("check", epilog="Example: rtx ledger check")
def check(results: Annotated[Path, typer.Option(help="The ledger's folder.")] = LEDGER) -> None:
    """Check that every run is whole, and has a commit of the history, today's data, and its own command."""
    end_if_empty(results)
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


def _print(recipe: Recipe, rows: list[tables.Row], format: Format) -> None:
    rows = [tables.Row(*map(tables.printable, row)) for row in rows]
    if format is not Format.terminal:
        typer.echo(tables.to_markdown(rows) if format is Format.markdown else tables.to_html(rows))
        return
    drawn = Table(title=f"{recipe.title} ({recipe.source})", box=SIMPLE_HEAD, padding=0, show_edge=False)
    for name in tables.HEADER[:-1]:
        drawn.add_column(IN_TWO.get(name, name), no_wrap=name in ("model", "parameters"), min_width=4, overflow="fold")
    for row in rows:
        broken = row._replace(variant=row.variant.replace("+", " +"))  # a narrow terminal can break the line there
        drawn.add_row(*map(escape, broken[:-1]))
    console.print(drawn)
    # below the table: a processor's name would take half the width of a terminal
    for hardware in sorted({row.hardware for row in rows if row.hardware}):
        models = ", ".join(dict.fromkeys(row.model for row in rows if row.hardware == hardware))
        console.print(f"hardware of {models}: {hardware}", highlight=False, markup=False, emoji=False)
