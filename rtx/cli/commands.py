"""The `rtx` command: list, data, train, sweep, evaluate, generate, score, translate, table, ledger, class."""

import atexit
import signal
import sys
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from rtx.checks import check_choice
from rtx.cli.classroom import class_app
from rtx.cli.completion import datasets
from rtx.cli.generate import generate
from rtx.cli.ledger import ledger_app, table_
from rtx.cli.score import score
from rtx.cli.sweep import sweep_
from rtx.cli.train import train_
from rtx.cli.translate import evaluate_, translate_
from rtx.evidence.tables import printable
from rtx.training.recipe import recipe_names

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="R-Transformer and its family.")
data_app = typer.Typer(no_args_is_help=True, help="The benchmark data: fetch them, or check what is there.")
app.add_typer(data_app, name="data")
app.add_typer(ledger_app, name="ledger")
app.add_typer(class_app, name="class")

DataName = Annotated[str, typer.Argument(help="A data set; see `rtx list data`.", autocompletion=datasets)]
Kind = StrEnum("Kind", ["models", "tasks", "recipes", "data"])


@app.command("list", epilog="Example: rtx list models")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="Print only these. Models have data sheets.")] = None,
) -> None:
    """List the names of models, tasks, recipes and data."""
    if kind is Kind.models:
        Console().print(_model_sheet())
        return
    for title in [kind] if kind else Kind:
        Console().print(f"[bold]{title}[/bold]  {'  '.join(_names(title))}", soft_wrap=True)


def _names(kind: Kind) -> list[str]:
    if kind is Kind.recipes:
        return recipe_names()
    if kind is Kind.data:
        return datasets()
    from rtx.models import MODELS, TRANSLATORS, WHOLE
    from rtx.tasks import TASKS

    return [*TASKS] if kind is Kind.tasks else [*MODELS, *WHOLE, *TRANSLATORS]


def _model_sheet() -> Table:
    from rtx.models import CARDS
    from rtx.tasks.build import parameters

    head = (Column("model", no_wrap=True), "paper, and a size it used", Column("parameters", justify="right"))
    drawn = Table(*head, "receptive field", box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name, card in CARDS.items():
        field = card.receptive_field(**card.sizes)
        size = ", ".join(f"{key} {value}" for key, value in card.sizes.items())
        seen = "whole past" if field is None else f"{field} steps"
        drawn.add_row(name, f"{card.paper}\n[dim]{card.table}: {size}[/dim]", f"{parameters(name):,}", seen)
    return drawn


@data_app.command(epilog="Example: rtx data fetch nottingham")
def fetch(name: DataName) -> None:
    """Download a data set (or find it under $RTX_DATA), verify its checksums, and print where it is."""
    check_choice("dataset", name, datasets())
    from rtx.tasks import data

    for path in data.fetch(name).values():
        typer.echo(str(path))


@data_app.command(epilog="Example: rtx data check mnist")
def check(name: DataName) -> None:
    """Print which files of a data set are there and whether their checksums are right. Exit with 1 if not all are."""
    check_choice("dataset", name, datasets())
    from rtx.tasks import data

    found = data.check(name)
    for one in found:
        typer.echo(f"{one.state}  {one.path or one.file.name}")
    raise typer.Exit(0 if all(one.state == "verified" for one in found) else 1)


app.command("train", epilog="Example: rtx train nottingham r-transformer --epochs 2 --set learning_rate=1e-3")(train_)
app.command("sweep", epilog="Example: rtx sweep nottingham gru --set learning_rate=1e-3,1e-4 --epochs 2")(sweep_)
app.command("evaluate", epilog="Example: rtx evaluate best.safetensors --split validation")(evaluate_)
app.command("generate", epilog="Example: rtx generate best.safetensors --temperature 0.8 --seed 1")(generate)
app.command("score", epilog="Example: rtx score best.safetensors my.txt --lines --csv scores.csv")(score)
app.command("translate", epilog="Example: rtx translate best.safetensors --beam 5 < german.txt")(translate_)
app.command("table", epilog="Example: rtx table nottingham --markdown")(table_)


def run() -> None:
    """Run the command. Bad input or a missing file ends it with one line and exit code 2, any other failure with 1."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has all letters
    try:
        app()
    except (ValueError, OverflowError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise  # a fault of rtx, which its traceback helps to find
        typer.echo(f"rtx: {printable(str(error) or type(error).__name__)}", err=True)
        raise SystemExit(2 if isinstance(error, (ValueError, OverflowError, FileNotFoundError)) else 1) from None
    finally:
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the exit takes a moment, too
