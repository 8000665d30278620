"""`rtx ledger fill`: make the runs that a TOML file lists and the ledger lacks."""

import hashlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from rtx.cli.train import Epochs, HowMuch, MaxTime, Results, Runs, Scale
from rtx.evidence.agenda import read_agenda
from rtx.evidence.ledger import LEDGER, read_results
from rtx.training.timing import countdown, format_time, parse_time

STOPPED = (124, 130, 143)  # exit codes: the time is over, Ctrl-C, SIGTERM

Agenda = Annotated[Path, typer.Argument(help=r"A TOML file of [\[runs]], such as results/full-size.toml.")]
Show = Annotated[bool, typer.Option("--show", help="Only print the commands, and which runs the ledger has.")]


def fill(
    context: typer.Context,
    agenda: Agenda,
    scale: HowMuch = Scale.full,
    epochs: Epochs = None,
    show: Show = False,
    max_time: MaxTime = None,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Make the listed runs that the ledger lacks, in order; a run that was begun goes on.

    A run that fails does not stop the others: its command is printed at the end.

    With --max-time the same command, given again and again, comes to the end in pieces.

    A sweep counts as made when the ledger has a run of any of its points.
    """
    entries, left = read_agenda(agenda, scale.value, epochs), countdown(parse_time(max_time))
    commands = [entry.command for entry in entries]

    def missing() -> list[str]:
        ledger = {recipe: [*read_results(recipe, results)] for recipe in {one.row[0] for one in entries}}
        return [one.command for one in entries if not any(map(one.is_made_by, ledger[one.row[0]]))]

    lacking = missing()
    if show:
        for command in commands:
            typer.echo(f"{'    ' if command in lacking else 'done'}  {command.removeprefix('rtx ')}")
        return
    typer.echo(f"the ledger has {len(commands) - len(lacking)} of {len(commands)} runs")
    places = ["--runs", str(runs), "--results", str(results)]
    failed = _make(commands, missing, lambda command: _run(context, command, left(), places), runs / "fill.db")
    if lacking:
        made = len(commands) - len(missing())
        typer.echo(f"the ledger now has {made} of {len(commands)} runs; rtx table {entries[0].row[0]} shows them")
    for command in failed:
        typer.echo(f"failed  {command.removeprefix('rtx ')}", err=True)
    if failed:
        raise typer.Exit(1)


def _make(commands: list[str], missing: Callable[[], list[str]], run: Callable[[str], int], path: Path) -> list[str]:
    """Run what is missing as trials of a study, which other processes may share; return the commands that failed."""
    from rtx.training.states import Exploded  # Lightning and Optuna take seconds to import: only here
    from rtx.training.study import Point, SharedStudy

    codes: dict[str, int] = {}

    def work(point: Point) -> tuple[float, dict[str, Any]]:
        typer.echo(point["run"])
        code = codes[point["run"]] = run(point["run"])
        if code in STOPPED:
            raise typer.Exit(code)
        if code:
            raise Exploded(f"exit code {code}")
        return 0.0, {}

    name = hashlib.sha256("\n".join(commands).encode()).hexdigest()
    shared = SharedStudy(path, None, f"fill {name}", {"run": commands})
    shared.run(lambda: [{"run": command} for command in missing() if command not in codes], work)
    return [command for command, code in codes.items() if code]


def _run(context: typer.Context, command: str, seconds: float | None, places: list[str]) -> int:
    """Run one `rtx` command in this process, and return its exit code."""
    words = [*shlex.split(command)[1:], *places]
    words += ["--resume"] if words[0] == "train" else []  # a sweep always resumes
    words += ["--max-time", format_time(seconds)] if seconds is not None else []
    try:
        return context.find_root().command.main(words, standalone_mode=False) or 0
    except typer.Abort:  # Ctrl-C before or after the training
        return 130
    except Exception as error:
        typer.echo(f"rtx: {error}", err=True)
        return 2
