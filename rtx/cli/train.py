"""`rtx train`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rtx.checks import check_choice
from rtx.cli import options
from rtx.evidence.agenda import as_typed
from rtx.evidence.ledger import LEDGER
from rtx.evidence.report import Report
from rtx.training.files import check_writable
from rtx.training.precision import PRECISIONS
from rtx.training.recipe import load_recipe, parse_setting
from rtx.training.timing import parse_time

if TYPE_CHECKING:
    from rtx.training.survival import Stopped

CHANGE = "Change a setting or a size, such as window=12, or epochs=30 to train longer; may be repeated."
Set = Annotated[list[str] | None, typer.Option("--set", help=CHANGE)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint, if it has one.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model: it starts later and trains faster.")]


def train_(
    recipe: options.Recipe,
    model: options.Row,
    variant: options.Variant = None,
    scale: options.HowMuch = options.Scale.full,
    seed: options.Seed = 0,
    epochs: options.Epochs = None,
    set_: Set = None,
    texts: options.Texts = None,
    midi: options.Midi = None,
    resume: Resume = False,
    precision: options.Precision = "32-true",
    compile: Compile = False,
    max_time: options.MaxTime = None,
    json: options.Json = False,
    runs: options.Runs = Path("runs"),
    results: options.Results = LEDGER,
) -> None:
    """Train a model of a recipe, choose its epoch by validation, test it once, and add it to the ledger.

    Ctrl-C saves and stops (exit code 130). To go on, give the same command with --resume.

    On a CPU the result is the same as without the stop.
    """
    check_choice("precision", precision, PRECISIONS)
    seconds = parse_time(max_time)
    settings = [*(set_ or []), *options.own_files(recipe, texts, midi, set_)]
    more = ["--precision", precision] if precision != "32-true" else []
    more += ["--compile"] if compile else []
    plan = load_recipe(recipe).plan(model, variant, dict(map(parse_setting, settings)), scale.value)
    command = as_typed(recipe, model, variant, scale, seed, epochs, settings, more)
    report = Report(json)
    how: dict[str, Any] = {"compiled": compile, "precision": precision, "max_seconds": seconds}
    how |= {"tell": report, "enable_progress_bar": report.bar}

    from rtx.evidence.record import train  # Lightning takes seconds to import: only here
    from rtx.training.fit import run_folder
    from rtx.training.states import Exploded
    from rtx.training.survival import Stopped

    check_writable("results", results)
    check_writable("runs", runs)
    try:
        path = train(plan, seed, epochs, resume, command, runs, results, **how)
    except Stopped as stop:
        how_to_go_on(stop, resume)
    except Exploded as error:
        typer.echo(f"rtx: {error}", err=True)
        raise typer.Exit(1) from None
    report.end(plan, path, results, run_folder(plan, seed, runs) / "best.safetensors")


def how_to_go_on(stop: "Stopped", resume: bool) -> NoReturn:
    """Print the command that goes on, which is this one with --resume, and end the process."""
    again = [*sys.argv[1:], *([] if resume else ["--resume"])]
    typer.echo(f"rtx: {stop}; go on with: {shlex.join(['rtx', *again])}", err=True)
    raise typer.Exit(stop.code)
