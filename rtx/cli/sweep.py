"""`rtx sweep`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rtx.cli.train import (
    Epochs,
    HowMuch,
    MaxTime,
    Precision,
    RecipeName,
    Results,
    RowName,
    Runs,
    SaveEvery,
    Scale,
    Seed,
    Variant,
    as_typed,
    how_to_go_on,
    on_terminal,
    parse_time,
)
from rtx.evidence.ledger import LEDGER
from rtx.tasks import task_by_name
from rtx.training.clock import countdown
from rtx.training.files import check_writable
from rtx.training.precision import parse_precision
from rtx.training.recipe import as_setting, load_recipe, parse_setting

if TYPE_CHECKING:
    from optuna import Study

    from rtx.training.sweep import Sweep

Values = Annotated[list[str] | None, typer.Option("--set", help="key=a,b,c, or key=a for all; may be repeated.")]
Show = Annotated[bool, typer.Option("--show", help="Only print what has been run.")]
Test = Annotated[bool, typer.Option("--test", help="At the end, test the best, once, and add it to the ledger.")]


def sweep_(
    recipe: RecipeName,
    model: RowName,
    set_: Values = None,
    variant: Variant = None,
    scale: HowMuch = Scale.full,
    seed: Seed = 0,
    epochs: Epochs = None,
    show: Show = False,
    test: Test = False,
    precision: Precision = "32-true",
    max_time: MaxTime = None,
    save_every: SaveEvery = 5.0,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Train a model with every combination of some settings, and choose by validation; the test split is not read.

    By default over the recipe's values: the paper's, where it prints them.

    The same command in other terminals, or on machines that see the folder --runs, shares the work: a device each.

    Stopped or killed, it goes on where it was. Of runs that failed by themselves, as by a large rate, none is chosen.
    """
    from rtx.training.survival import Stopped  # Lightning and Optuna take seconds to import: only here
    from rtx.training.sweep import Sweep, finished, plot, settled

    precision = parse_precision(precision)
    loaded, left = load_recipe(recipe), countdown(parse_time(max_time))
    values = loaded.sweep_values(variant, scale.value) | dict(map(parse_values, set_ or []))
    sweep = Sweep(loaded, model, values, variant, scale.value, seed, epochs, runs, precision)
    metric = task_by_name(sweep.plan({}).task).metric
    if show:
        _print(sweep.study() if sweep.folder.exists() else None, metric)
        return
    if test:
        check_writable("results", results)
    check_writable("runs", runs)
    how: dict[str, Any] = {"devices": 1, "enable_progress_bar": on_terminal(), "every_seconds": 60 * save_every}
    try:
        study = sweep.run(left(), **how)
    except Stopped as stop:
        how_to_go_on(stop, resume=True)  # always: nothing else would
    _print(study, metric)
    if finished(study):
        plot(study, sweep.folder / "sweep.png", metric)
        typer.echo(f"wrote {sweep.folder / 'sweep.png'}")
    if not test:
        return
    if not (finished(study) and settled(study, sweep.grid)):
        why = "others still run" if finished(study) else "no run has come to its end"
        typer.echo(f"rtx: not tested: {why}", err=True)
        raise typer.Exit(1)
    try:
        path = _test_best(sweep, study, results, max_seconds=left(), **how)
    except Stopped as stop:
        how_to_go_on(stop, resume=True)
    typer.echo(f"wrote {path}")


def _test_best(sweep: "Sweep", study: "Study", results: Path, **how: Any) -> Path | None:
    """The ledger's new file: of the chosen run, which is at its end, under the command that makes it alone."""
    from rtx.evidence.record import train
    from rtx.training.sweep import finished, tried

    best, precision = finished(study)[0].params, sweep.precision
    settings = [as_setting(key, value) for key, value in best.items()]
    more = ["--precision", precision] if precision != "32-true" else []
    row = (sweep.recipe.name, sweep.row, sweep.variant, Scale(sweep.scale))
    command = as_typed(*row, sweep.seed, sweep.epochs, settings, *more)
    how |= {"precision": precision, "chosen_from": tried(study)}
    return train(sweep.plan(best), sweep.seed, sweep.epochs, True, command, sweep.runs, results, **how)


def parse_values(text: str) -> tuple[str, list[Any]]:
    """`key=a,b,c`: a list of what `parse_setting` reads, also of one.

    Raises:
        ValueError: if there is no `=`.
    """
    key, value = parse_setting(text)
    if isinstance(value, list):
        return key, value
    return key, [parse_setting(f"{key}={part}")[1] for part in text.partition("=")[2].split(",")]


def _print(study: "Study | None", metric: str) -> None:
    from rtx.training.sweep import finished

    trials = study.get_trials() if study else []
    shown = [t for t in trials if t.state.name != "FAIL" or "error" in t.user_attrs]
    if not (study and shown):
        Console().print("nothing has been run")
        return
    order = [trial.number for trial in finished(study)]
    shown.sort(key=lambda t: order.index(t.number) if t.number in order else len(order))
    drawn = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    keys = list(shown[0].params)
    for name in (*keys, "epoch", f"validation, {metric}"):
        drawn.add_column(name)
    for trial in shown:
        score = f"{trial.value:.4f}" if trial.value is not None else trial.user_attrs.get("error", "running")
        cells = (*(str(trial.params[key]) for key in keys), str(trial.user_attrs.get("epoch", "")), score)
        drawn.add_row(*map(escape, cells))
    Console().print(drawn)
