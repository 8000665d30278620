"""`rtx train`."""

import os
import re
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rtx.checks import LARGEST_SEED
from rtx.cli.completion import recipes, rows, variants
from rtx.evidence.agenda import as_typed
from rtx.evidence.ledger import LEDGER
from rtx.training.files import check_writable
from rtx.training.precision import check_precision
from rtx.training.recipe import load_recipe, parse_setting

if TYPE_CHECKING:
    from rtx.training.survival import Stopped


Scale = StrEnum("Scale", ["quick", "cpu", "full"])
RecipeName = Annotated[str, typer.Argument(help="A paper's table; see `rtx list recipes`.", autocompletion=recipes)]
RowName = Annotated[str, typer.Argument(help="A row of the table; see `rtx table RECIPE`.", autocompletion=rows)]
Variant = Annotated[
    str | None, typer.Option(help="A variant of the recipe. Default: the recipe's own.", autocompletion=variants)
]
HowMuch = Annotated[Scale, typer.Option(help="quick: a minute; cpu: an hour or so on one core; full: the paper's.")]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="The seed of weights, order and dropout.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Train for fewer epochs; the ledger records it.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="key=value; may be repeated.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint, if it has one.")]
Precision = Annotated[str, typer.Option(help="A precision of Lightning, such as 32-true or bf16-mixed.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model: it starts later and trains faster.")]
MaxTime = Annotated[str | None, typer.Option(metavar="HH:MM:SS", help="Save and stop after this time (exit code 124).")]
SaveEvery = Annotated[float, typer.Option(min=0.01, help="Minutes between checkpoints inside an epoch.")]
HOME = {"callback": lambda folder: Path(os.path.expanduser(folder))}  # a shell leaves the ~ of --runs=~/runs
Runs = Annotated[Path, typer.Option(help="Folder for checkpoints and logs.", **HOME)]
Results = Annotated[Path, typer.Option(help="The ledger's folder.", **HOME)]


def train_(
    recipe: RecipeName,
    model: RowName,
    variant: Variant = None,
    scale: HowMuch = Scale.full,
    seed: Seed = 0,
    epochs: Epochs = None,
    set_: Set = None,
    resume: Resume = False,
    precision: Precision = "32-true",
    compile: Compile = False,
    max_time: MaxTime = None,
    save_every: SaveEvery = 5.0,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Train a model of a recipe, choose its epoch by validation, test it once, and add it to the ledger.

    Ctrl-C saves and stops (exit code 130). The same command with --resume goes on, and gives the same result.
    """
    more = ["--precision", precision] if (precision := check_precision(precision)) != "32-true" else []
    seconds = parse_time(max_time)
    plan = load_recipe(recipe).plan(model, variant, dict(map(parse_setting, set_ or [])), scale.value)
    command = as_typed(recipe, model, variant, scale, seed, epochs, set_ or [], [*more, *["--compile"] * compile])
    how: dict[str, Any] = {"compiled": compile, "precision": precision, "enable_progress_bar": on_terminal()}
    how |= {"every_seconds": 60 * save_every, "max_seconds": seconds}

    from rtx.evidence.record import train  # Lightning takes seconds to import: only here
    from rtx.training.survival import Stopped

    check_writable("results", results)
    check_writable("runs", runs)
    try:
        path = train(plan, seed, epochs, resume, command, runs, results, **how)
    except Stopped as stop:
        how_to_go_on(stop, resume)
    typer.echo(f"wrote {path}")


def how_to_go_on(stop: "Stopped", resume: bool) -> NoReturn:
    """Print the command that goes on, which is this one with --resume, and end the process."""
    again = [*sys.argv[1:], *([] if resume else ["--resume"])]
    typer.echo(f"rtx: {stop}; go on with: {shlex.join(['rtx', *again])}", err=True)
    raise typer.Exit(stop.code)


def on_terminal() -> bool:
    """Whether somebody looks on: standard output is there, and a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def parse_time(text: str | None) -> float | None:
    """Return the seconds in `HH:MM:SS`; None for None."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+):([0-5]\d):([0-5]\d)", text)
    if not found:
        raise ValueError(f"--max-time: expected HH:MM:SS, such as 01:30:00, got {text!r}")
    hours, minutes, seconds = map(int, found.groups())
    return 3600.0 * hours + 60 * minutes + seconds


def format_time(seconds: float) -> str:
    """Whole seconds as `parse_time` reads them."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"
