"""`rtx train`."""

import os
import shlex
import sys
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rtx.checks import LARGEST_SEED, check_choice
from rtx.cli.completion import recipes, rows, variants
from rtx.evidence.agenda import as_typed
from rtx.evidence.ledger import LEDGER
from rtx.evidence.report import Report
from rtx.training.files import check_writable
from rtx.training.precision import PRECISIONS
from rtx.training.recipe import load_recipe, parse_setting
from rtx.training.timing import parse_time

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
Texts = Annotated[list[str] | None, typer.Option("--text", help="A file or folder of yours, for the recipe text.")]
Midi = Annotated[list[str] | None, typer.Option(help="A folder or MIDI file of yours, for the recipe music.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint, if it has one.")]
Precision = Annotated[str, typer.Option(help="A precision of Lightning, such as 32-true or bf16-mixed.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model: it starts later and trains faster.")]
MaxTime = Annotated[str | None, typer.Option(metavar="HH:MM:SS", help="Save and stop after this time (exit code 124).")]
SaveEvery = Annotated[float, typer.Option(min=0.01, help="Minutes between checkpoints inside an epoch.")]
Json = Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON, for scripts.")]
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
    texts: Texts = None,
    midi: Midi = None,
    resume: Resume = False,
    precision: Precision = "32-true",
    compile: Compile = False,
    max_time: MaxTime = None,
    save_every: SaveEvery = 5.0,
    json: Json = False,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Train a model of a recipe, choose its epoch by validation, test it once, and add it to the ledger.

    Ctrl-C saves and stops (exit code 130). The same command with --resume goes on, and gives the same result.
    """
    set_ = [*(set_ or []), *own_path("text", recipe, texts), *own_path("music", recipe, midi)]
    check_choice("precision", precision, PRECISIONS)
    more = ["--precision", precision] if precision != "32-true" else []
    seconds = parse_time(max_time)
    plan = load_recipe(recipe).plan(model, variant, dict(map(parse_setting, set_)), scale.value)
    command = as_typed(recipe, model, variant, scale, seed, epochs, set_, [*more, *["--compile"] * compile])
    report = Report(json)
    how: dict[str, Any] = {"compiled": compile, "precision": precision, "enable_progress_bar": report.bar}
    how |= {"every_seconds": 60 * save_every, "max_seconds": seconds, "tell": report}

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


def own_path(kind: str, recipe: str, paths: list[str] | None) -> list[str]:
    """Return the setting of a user's own files, which only the recipe of that name reads."""
    if paths and recipe != kind:
        raise ValueError(f"recipe: expected {kind}, which reads your files, got {recipe!r}")
    for path in paths or []:
        if not path or not os.path.exists(os.path.expanduser(path)):
            raise ValueError(f"{kind}: expected a file or a folder, found none at {path!r}")
    files = [os.path.normpath(path) for path in paths or []]  # songs/ and songs are one run
    return [f"path={dumps(files, ensure_ascii=False) if files[1:] else files[0]}"] if files else []


def how_to_go_on(stop: "Stopped", resume: bool) -> NoReturn:
    """Print the command that goes on, which is this one with --resume, and end the process."""
    again = [*sys.argv[1:], *([] if resume else ["--resume"])]
    typer.echo(f"rtx: {stop}; go on with: {shlex.join(['rtx', *again])}", err=True)
    raise typer.Exit(stop.code)
