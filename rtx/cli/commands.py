"""The `rtx` command: list, data, train, sweep, evaluate, generate, score, translate, table, ledger, class."""

from enum import StrEnum
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rtx.cli.classroom import class_app
from rtx.cli.generate import generate
from rtx.cli.ledger import ledger_app, table_
from rtx.cli.score import score
from rtx.cli.sweep import sweep_
from rtx.cli.train import train_
from rtx.cli.translate import evaluate_, translate_
from rtx.training.recipe import load_recipe, recipe_names


class Verbs(TyperGroup):
    """The commands. The error of a wrong value also says what was given."""

    def invoke(self, *context: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(*context)
        except typer.BadParameter as error:
            from pydantic import ValidationError  # half a second

            if isinstance(error.__cause__, ValidationError):
                given, message = repr(error.__cause__.errors()[0]["input"]), error.message.removeprefix("Value error, ")
                error.message = message if given in message else f"{message}, got {given}"
            raise


app = typer.Typer(cls=Verbs, no_args_is_help=True, pretty_exceptions_enable=False, help="R-Transformer and its family.")
data_app = typer.Typer(no_args_is_help=True, help="The benchmark data: fetch them, or check what is there.")
app.add_typer(data_app, name="data")
app.add_typer(ledger_app, name="ledger")
app.add_typer(class_app, name="class")

DataName = Annotated[str, typer.Argument(help="A data set; see `rtx list data`.")]
Kind = StrEnum("Kind", ["models", "tasks", "recipes", "data"])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rtx {version_of('rtx')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options of the command itself."""


@app.command("list", epilog="Example: rtx list models")
def list_(
    kind: Annotated[
        Kind | None, typer.Argument(help="Print only this kind; models with sizes, recipes with titles.")
    ] = None,
) -> None:
    """List the names of models, tasks, recipes and data."""
    from rtx.models import MODELS, TRANSLATORS, WHOLE
    from rtx.tasks import TASKS
    from rtx.tasks.data import DATASETS

    models = [*MODELS, *WHOLE, *TRANSLATORS]
    names = {Kind.models: models, Kind.tasks: TASKS, Kind.recipes: recipe_names(), Kind.data: DATASETS}
    if kind is Kind.models:
        _print_models()
        return
    if kind is Kind.recipes:
        typer.echo("\n".join(f"{name:<24}{load_recipe(name).title}" for name in recipe_names()))
        return
    for title in [kind] if kind else Kind:
        typer.echo(f"{title}  {'  '.join(names[title])}")


def _print_models() -> None:
    """Print each model with the size that its paper used, its parameters, and how far back it sees."""
    from rtx.models import CARDS
    from rtx.tasks.build import parameters

    for name, card in CARDS.items():
        field = card.receptive_field(**card.sizes)
        size = ", ".join(f"{key} {value}" for key, value in card.sizes.items())
        seen = "the whole past" if field is None else f"{field} steps"
        typer.echo(f"{name:<24}{parameters(name):>12,} parameters, sees {seen}")
        typer.echo(f"    {card.paper}; {card.table}: {size}")


@data_app.command(epilog="Example: rtx data fetch nottingham")
def fetch(name: DataName) -> None:
    """Download a data set (or find it under $RTX_DATA), verify its checksums, and print where it is."""
    from rtx.tasks import data

    for path in data.fetch(name).values():
        typer.echo(str(path))


@data_app.command(epilog="Example: rtx data check mnist")
def check(name: DataName) -> None:
    """Print which files of a data set are there and whether their checksums are right. Exit with 1 if not all are."""
    from rtx.tasks import data

    found = data.check(name)
    for one in found:
        typer.echo(f"{one.state}  {one.path or one.file.path.name}")
    if all(one.state == "verified" for one in found):
        return
    places = " and ".join(map(str, data.folders()))
    typer.echo(f"rtx: looked in {places}; to get the files, type: rtx data fetch {name}", err=True)
    raise typer.Exit(1)


app.command("train", epilog="Example: rtx train nottingham r-transformer --epochs 2 --set learning_rate=1e-3")(train_)
app.command("sweep", epilog="Example: rtx sweep nottingham gru --set learning_rate=1e-3,1e-4 --epochs 2")(sweep_)
app.command("evaluate", epilog="Example: rtx evaluate best.safetensors --split validation")(evaluate_)
app.command("generate", epilog="Example: rtx generate best.safetensors --temperature 0.8 --seed 1")(generate)
app.command("score", epilog="Example: rtx score best.safetensors my.txt --lines --csv scores.csv")(score)
app.command("translate", epilog="Example: rtx translate best.safetensors --beam 5 < german.txt")(translate_)
app.command("table", epilog="Example: rtx table nottingham --markdown")(table_)
