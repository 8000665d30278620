"""`rtx ledger fill`: an agenda's runs, one after the other, of which each ends in the ledger."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rtx.cli.entries import Entry, read_agenda
from rtx.cli.train import Epochs, HowMuch, MaxTime, Results, Runs, Scale, format_time, parse_time
from rtx.training.clock import countdown
from rtx.training.ledger import LEDGER, Result, read_results

TIMEOUT = 124  # what a run ends with that saved because its time was over
STOP = (signal.SIGINT, signal.SIGTERM)
MARGIN = 20.0  # seconds that a process takes to begin, and to save

Agenda = Annotated[Path, typer.Argument(help="A TOML file of [[runs]], such as results/full-size.toml.")]
Show = Annotated[bool, typer.Option("--show", help="Only print the commands, and which the ledger has.")]


def fill(
    agenda: Agenda,
    scale: HowMuch = Scale.full,
    epochs: Epochs = None,
    show: Show = False,
    max_time: MaxTime = None,
    runs: Runs = Path("runs"),
    results: Results = LEDGER,
) -> None:
    """Make an agenda's runs that the ledger lacks, in order; one that was begun goes on.

    Each is a process of its own; those that fail are named at the end. With --max-time the same command, given again
    and again, comes to the end in pieces. One at a time for a folder of runs.
    """
    entries = read_agenda(agenda, scale, epochs)
    ledger: dict[str, list[Result]] = {one.recipe: [*read_results(one.recipe, results)] for one in entries}
    missing = [one for one in entries if not any(map(one.is_made_by, ledger[one.recipe]))]
    if show:
        for entry in entries:
            typer.echo(f"{'    ' if entry in missing else 'done'}  {entry}")
        return
    typer.echo(f"the ledger has {len(entries) - len(missing)} of {len(entries)} runs")
    failed, code = _make(missing, parse_time(max_time), runs, results)
    for entry in failed:
        typer.echo(f"failed  {entry}", err=True)
    if code:
        typer.echo(f"rtx: stopped; go on with: {shlex.join(['rtx', *sys.argv[1:]])}", err=True)
    if code or failed:
        raise typer.Exit(code or 1)


def _make(entries: list[Entry], seconds: float | None, runs: Path, results: Path) -> tuple[list[Entry], int]:
    """Those that failed, and the exit code of a stop, 0 if there was none."""
    failed: list[Entry] = []
    left = countdown(seconds)
    for entry in entries:
        most = left()
        if most is not None and most < MARGIN + 1:
            return failed, TIMEOUT
        typer.echo(f"rtx {entry}")
        code, asked = _run(entry, None if most is None else most - MARGIN, runs, results)
        if asked or code == TIMEOUT:
            return failed, 128 + asked[0] if asked else TIMEOUT
        if code:
            failed.append(entry)
    return failed, 0


def _run(entry: Entry, seconds: float | None, runs: Path, results: Path) -> tuple[int, list[int]]:
    """The exit code of the run, in a process of its own, and the signals that asked to stop meanwhile."""
    words = [*entry.words, "--runs", str(runs), "--results", str(results)]
    words += ["--resume"] if entry.words[0] == "train" else []  # a sweep always does
    if seconds is not None:
        words += ["--max-time", format_time(seconds)]
    # -P: what lies in the folder where it is called is not what is imported
    command = [sys.executable, "-P", "-c", "from rtx.cli import main; main()", *words]
    with subprocess.Popen(command) as run, _handing_on(run) as asked:
        return run.wait(), asked


@contextmanager
def _handing_on(run: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Asked to stop, wait until the run has saved; the list is of who asked. A terminal's Ctrl-C reaches both."""
    asked: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        asked.append(number)
        if number != signal.SIGINT:
            run.send_signal(number)

    before = {number: signal.signal(number, note) for number in STOP}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
