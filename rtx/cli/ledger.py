"""`rtx table` and `rtx ledger`: the papers' tables with our numbers, and checks of these numbers."""

import sys
from collections.abc import Sequence
from csv import writer
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rtx.cli.completion import ALL, recipes_or_all, variants
from rtx.cli.fill import fill
from rtx.cli.train import Results
from rtx.evidence import tables
from rtx.evidence.ledger import LEDGER
from rtx.training.recipe import Recipe, load_recipe, recipe_names

IN_TWO = {"validation": "vali-\ndation", "parameters": "para-\nmeters"}  # these heads are wider than their numbers

ledger_app = typer.Typer(no_args_is_help=True, help="The finished runs.")
ledger_app.command("fill", epilog="Example: rtx ledger fill results/full-size.toml --max-time 00:09:30")(fill)


def table_(
    recipe: Annotated[str, typer.Argument(help='A recipe; "all" prints every table.', autocompletion=recipes_or_all)],
    variant: Annotated[
        str | None, typer.Option(help="Print only the runs of this variant.", autocompletion=variants)
    ] = None,
    every: Annotated[bool, typer.Option("--every", help="Print every line, not one for each model.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, which has every line.")] = False,
    results: Results = LEDGER,
) -> None:
    """Print a paper's table with our numbers beside the paper's. The best score is bold.

    A model has one line: full-size and complete runs come first, then those with most seeds and the best validation.
    """
    if variant is not None and recipe == ALL:
        raise ValueError(f"variant: expected the one recipe that has it, got {recipe}")
    loaded = [load_recipe(name) for name in (recipe_names() if recipe == ALL else [recipe])]
    empty = [one for one in loaded if recipe == ALL and not any((results / one.name).glob("*.json"))]
    shown = [one for one in loaded if one not in empty]
    if csv:
        lines = [[one.name, *_printable(line)] for one in shown for line in tables.rows(one, results, variant)]
        writer(sys.stdout, lineterminator="\n").writerows([["recipe", *tables.HEADER], *lines])
    else:
        for one in shown:
            _print(one, results, variant, every, markdown, titled=recipe == ALL)
    if empty:
        typer.echo(f"no runs yet: {', '.join(one.name for one in empty)}", err=True)
    end_if_empty(results)  # without our numbers, a table still has the papers'


@ledger_app.command("check", epilog="Example: rtx ledger check")
def check(results: Results = LEDGER) -> None:
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


def _printable(line: tables.Row) -> tables.Row:
    return tables.Row(*map(tables.printable, line))


def _print(recipe: Recipe, results: Path, variant: str | None, every: bool, markdown: bool, titled: bool) -> None:
    found = tables.overview(recipe, results, variant)
    if every:
        found = found._replace(lines=tables.rows(recipe, results, variant), best=set())
    found = found._replace(lines=[*map(_printable, found.lines)])
    if markdown:
        if titled:
            typer.echo(f"\n## {recipe.title} ({recipe.source})\n")
        typer.echo(tables.to_markdown(found.lines) if every else found.to_markdown())
    else:
        names = [name for name in tables.HEADER if name != "hardware"] if every else tables.SHORT
        _draw(f"{recipe.title} ({recipe.source})\n{found.score}", found, names)


def _draw(title: str, found: tables.Overview, names: Sequence[str]) -> None:
    drawn = Table(title=escape(title), box=SIMPLE_HEAD, padding=0, show_edge=False)
    for name in names:
        drawn.add_column(IN_TWO.get(name, name), no_wrap=name in ("model", "parameters"), min_width=4, overflow="fold")
    for place, line in enumerate(found.lines):
        line = line._replace(variant=line.variant.replace("+", " +"))  # a narrow terminal can break the line there
        cells = {name: Text(getattr(line, name)) for name in names}
        if place in found.best:
            cells["ours"].stylize("bold")
        drawn.add_row(*cells.values())
    Console().print(drawn)
