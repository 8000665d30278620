"""`rtx sweep`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rtx.checks import check_choice
from rtx.cli import train as options
from rtx.cli.train import Scale, how_to_go_on
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
Show = Annotated[bool, typer.Option("--show", help="Only print what has been run.")]
Test = Annotated[bool, typer.Option("--test", help="At the end, test the best, once, and add it to the ledger.")]
Storage = Annotated[str | None, typer.Option(help="postgresql://user@host/database, for machines that share a sweep.")]


def sweep_(
    recipe: options.RecipeName,
    model: options.RowName,
    set_: Values = None,
    texts: options.Texts = None,
    midi: options.Midi = None,
    variant: options.Variant = None,
    scale: options.HowMuch = Scale.full,
    seed: options.Seed = 0,
    epochs: options.Epochs = None,
    show: Show = False,
    test: Test = False,
    precision: options.Precision = "32-true",
    max_time: options.MaxTime = None,
    save_every: options.SaveEvery = 5.0,
    runs: options.Runs = Path("runs"),
    results: options.Results = LEDGER,
    storage: Storage = None,
) -> None:
    """Train a model with every combination of some settings, and choose by validation; the test split is not read.

    By default, the values are the recipe's: those of the paper, where the paper prints them.

    Other terminals share the work if they run this command, with one device each. Machines share it by --storage.

    After a stop or a crash, give this command again. A run whose loss exploded is never chosen.
    """
    check_choice("precision", precision, PRECISIONS)
    loaded, left = load_recipe(recipe), countdown(parse_time(max_time))
    given = dict(map(parse_values, set_ or []))
    point = {key: some[0] for key, some in given.items() if some}
    for one in [point, *(point | {key: value} for key, some in given.items() for value in some)]:
        loaded.check_names(model, variant, scale.value, one)
    values = loaded.sweep_values(variant, scale.value) | given
    files = [*options.own_path("text", recipe, texts), *options.own_path("music", recipe, midi)]
    values |= {key: [value] for key, value in map(parse_setting, files)}  # all files together are one value

    from rtx.training.survival import Stopped  # Lightning and Optuna take seconds to import: only here
    from rtx.training.sweep import Sweep

    sweep = Sweep(loaded, model, values, variant, scale.value, seed, epochs, runs, precision, storage)
    if show:
        if storage or sweep.folder.exists():  # opening a sweep would make its folder
            _print(sweep.open().study, sweep.task.metric)
        else:
            typer.echo("nothing has been run")
        return
    try:
        _run(sweep, left, results if test else None, 60 * save_every)
    except Stopped as stop:
        how_to_go_on(stop, resume=True)  # the same command always goes on


def _run(sweep: "Sweep", left: Callable[[], float | None], results: Path | None, every_seconds: float) -> None:
    """Run the sweep, print its runs, and test the best run if there is a folder for the result."""
    from rtx.training.sweep import finished

    check_writable("runs", sweep.runs)
    if results is not None:
        check_writable("results", results)
    brief, task = Report(brief=True), sweep.task
    typer.echo(f"{len(sweep.grid)} runs; validation chooses by {task.metric}, {DIRECTION[task.best]}")
    how: dict[str, Any] = {"enable_progress_bar": brief.bar, "every_seconds": every_seconds}
    study = sweep.run(left(), tell=brief, **how)
    _print(study, task.metric)
    if results is not None:
        _test_best(sweep, study, results, max_seconds=left(), **how)
    elif best := finished(study)[:1]:
        typer.echo(f"best: {as_typed_together(best[0].params)}; the same command with --test tests it, once")


def _test_best(sweep: "Sweep", study: "Study", results: Path, **how: Any) -> None:
    """Test the chosen run. The ledger's new file has the command that makes this run alone."""
    from rtx.evidence.record import train
    from rtx.training.fit import run_folder
    from rtx.training.sweep import finished, tried

    if sweep.left(study) or not finished(study):
        why = "other processes still run" if sweep.left(study) else "no run came to its end"
        typer.echo(f"rtx: not tested: {why}", err=True)
        raise typer.Exit(1)
    best, precision = finished(study)[0].params, sweep.precision
    settings = [as_setting(key, value) for key, value in best.items()]
    more = ["--precision", precision] if precision != "32-true" else []
    row = (sweep.recipe.name, sweep.row, sweep.variant, sweep.scale)
    command = as_typed(*row, sweep.seed, sweep.epochs, settings, more)
    how |= {"precision": precision, "chosen_from": tried(study)}
    plan, report = sweep.plan(best), Report()
    path = train(plan, sweep.seed, sweep.epochs, True, command, sweep.runs, results, tell=report, **how)
    report.end(plan, path, results, run_folder(plan, sweep.seed, sweep.runs) / "best.safetensors")


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Return the key and the values of `key=a,b,c`, each read by `parse_setting`."""
    key, value = parse_setting(text)
    if not isinstance(value, list):
        value = [parse_setting(f"{key}={part}")[1] for part in text.partition("=")[2].split(",")]
    return key, value


def _print(study: "Study", metric: str) -> None:
    """Print the runs that ended, the best first, then the runs that failed, are impossible or still go on."""
    from rtx.training.sweep import finished

    others = [t for t in study.get_trials() if t.params and t.state.name != "COMPLETE"]
    shown = [*finished(study), *(t for t in others if t.state.name != "FAIL" or "error" in t.user_attrs)]
    if not shown:
        Console().print("nothing has been run")
        return
    drawn = Table(*shown[0].params, "epoch", f"validation, {metric}", box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for trial in shown:
        score = f"{trial.value:.4f}" if trial.value is not None else trial.user_attrs.get("error", "running")
        cells = (*map(str, trial.params.values()), str(trial.user_attrs.get("epoch", "")), score)
        drawn.add_row(*map(escape, map(printable, cells)))
    Console().print(drawn)
