"""`rtx sweep`."""

import shlex
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtx.checks import check_choice
from rtx.cli import options
from rtx.cli.train import how_to_go_on
from rtx.evidence.agenda import as_typed
from rtx.evidence.ledger import LEDGER
from rtx.evidence.report import Report
from rtx.evidence.tables import DIRECTION, printable
from rtx.training.files import check_writable
from rtx.training.precision import PRECISIONS
from rtx.training.recipe import as_setting, as_typed_together, load_recipe, parse_setting
from rtx.training.timing import countdown, parse_time

if TYPE_CHECKING:
    from optuna import Study

    from rtx.training.sweep import Sweep

Values = Annotated[list[str] | None, typer.Option("--set", help="key=a,b,c, or key=a for all; may be repeated.")]
Test = Annotated[bool, typer.Option("--test", help="At the end, test the best, once, and add it to the ledger.")]
Try = Annotated[int | None, typer.Option(min=1, help="Choose after so many epochs; --test trains the best on.")]
Storage = Annotated[str | None, typer.Option(help="postgresql://user@host/database, for machines that share a sweep.")]


def sweep_(
    recipe: options.Recipe,
    model: options.Row,
    set_: Values = None,
    texts: options.Texts = None,
    midi: options.Midi = None,
    variant: options.Variant = None,
    scale: options.HowMuch = options.Scale.full,
    seed: options.Seed = 0,
    epochs: options.Epochs = None,
    try_epochs: Try = None,
    test: Test = False,
    precision: options.Precision = "32-true",
    max_time: options.MaxTime = None,
    runs: options.Runs = Path("runs"),
    results: options.Results = LEDGER,
    storage: Storage = None,
) -> None:
    """Train a model with every combination of some settings, and choose by validation.

    No model is tested, except the best one with --test.

    By default, the values are the recipe's: those of the paper, where the paper prints them.

    Other terminals share the work if they run this command, with one device each.

    Several machines share the work with --storage.

    After a stop or a crash, give this command again. A run whose loss exploded is never chosen.
    """
    check_choice("precision", precision, PRECISIONS)
    if try_epochs and epochs and try_epochs > epochs:
        raise ValueError(f"try-epochs: expected at most the {epochs} of --epochs, got {try_epochs}")
    loaded, left = load_recipe(recipe), countdown(parse_time(max_time))
    given = dict(map(parse_values, set_ or []))
    for point in product(*given.values()):
        loaded.check_names(model, variant, scale.value, dict(zip(given, point, strict=True)))
    values = loaded.sweep_values(variant, scale.value) | given
    values |= {key: [value] for key, value in map(parse_setting, options.own_files(recipe, texts, midi, set_))}

    from rtx.training.survival import Stopped  # Lightning and Optuna take seconds to import: only here
    from rtx.training.sweep import Sweep, finished

    sweep = Sweep(loaded, model, values, variant, scale.value, seed, try_epochs or epochs, runs, precision, storage)
    check_writable("runs", runs)
    check_writable("results", results)
    brief, task = Report(brief=True), sweep.task
    typer.echo(f"{len(sweep.grid)} runs; validation chooses by {task.metric}, {DIRECTION[task.best]}")
    try:
        study = sweep.run(left(), tell=brief, enable_progress_bar=brief.bar)
        _print(study)
        if not finished(study) and not sweep.left(study):
            raise ChildProcessError("no run came to its end, so none is chosen")
        if test:
            _test_best(sweep, study, results, epochs, left())
        elif not sweep.left(study):
            typer.echo(printable(f"best        {as_typed_together(finished(study)[0].params)}"))
            typer.echo(printable(f"test it     {shlex.join(['rtx', *sys.argv[1:], '--test'])}"))
    except Stopped as stop:
        how_to_go_on(stop, resume=True)  # the same command always goes on


def _test_best(sweep: "Sweep", study: "Study", results: Path, epochs: int | None, max_seconds: float | None) -> None:
    """Train the chosen run to its end, and test it. The ledger's new file has the command that makes this run alone."""
    from rtx.evidence.record import train
    from rtx.training.fit import run_folder
    from rtx.training.sweep import finished, tried

    if sweep.left(study):
        raise ChildProcessError("not tested: other processes still run")
    best, seed = finished(study)[0].params, sweep.seed
    row = (sweep.recipe.name, sweep.row, sweep.variant, sweep.scale)
    more = ["--precision", sweep.precision] if sweep.precision != "32-true" else []
    command = as_typed(*row, seed, epochs, [as_setting(*pair) for pair in best.items()], more)
    plan, report = sweep.plan(best), Report()
    how: dict[str, Any] = {"precision": sweep.precision, "max_seconds": max_seconds, "chosen_from": tried(study)}
    how |= {"tell": report, "enable_progress_bar": report.bar}
    path = train(plan, seed, epochs, True, command, sweep.runs, results, **how)
    report.end(plan, path, results, run_folder(plan, seed, sweep.runs) / "best.safetensors")


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Return the key and the values of `key=a,b,c`, each read by `parse_setting`."""
    key, _ = parse_setting(text)
    return key, [parse_setting(f"{key}={part}")[1] for part in text.partition("=")[2].split(",")]


def _print(study: "Study") -> None:
    """Print the runs that came to their end, the best first, then those that failed or are impossible."""
    from rtx.training.sweep import ended, finished

    for trial in finished(study):
        epoch = f"epoch {trial.user_attrs['epoch']}"
        typer.echo(printable(f"{trial.value:>10.5g}  {epoch:<10}{as_typed_together(trial.params)}"))
    for trial in ended(study):
        if "error" in trial.user_attrs:
            typer.echo(printable(f"    failed  {as_typed_together(trial.params)}: {trial.user_attrs['error']}"))
