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

import torch
import typer

from rtx.cli.entries import Entry, read_agenda
from rtx.cli.train import Epochs, HowMuch, MaxTime, Results, Runs, Scale, format_time, parse_time
from rtx.evidence.ledger import LEDGER, Result, read_results
from rtx.training.clock import countdown

TIMEOUT = 124  # what a run ends with that saved because its time was over
# Windows lacks the last
STOP = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
STOPPED = (TIMEOUT, 128 + signal.SIGINT, 128 + signal.SIGTERM)  # somebody may have asked the run itself
MARGIN = 20.0  # seconds that a process takes to begin, and to save

Agenda = Annotated[Path, typer.Argument(help=r"A TOML file of [\[runs]], such as results/full-size.toml.")]
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

    Each is a process of its own; those that fail are named at the end. One at a time for a folder --runs.

    With --max-time the same command, given again and again, comes to the end in pieces.

    A sweep counts as made when the ledger has a run of any of its points.
    """
    entries, seconds = read_agenda(agenda, scale, epochs), parse_time(max_time)
    ledger: dict[str, list[Result]] = {one.recipe: [*read_results(one.recipe, results)] for one in entries}
    missing = [one for one in entries if not any(map(one.is_made_by, ledger[one.recipe]))]
    if show:
        for entry in entries:
            typer.echo(f"{'    ' if entry in missing else 'done'}  {entry}")
        return
    typer.echo(f"the ledger has {len(entries) - len(missing)} of {len(entries)} runs")
    failed, code = _make(missing, seconds, runs, results)
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
    with Keeper.listening() as keeper:
        for entry in entries:
            most = left()
            if keeper.asked or (most is not None and most < MARGIN + 1):
                return failed, keeper.code
            typer.echo(f"rtx {entry}")
            code = keeper.wait_for(_command(entry, None if most is None else most - MARGIN, runs, results))
            if keeper.asked or code in STOPPED:
                return failed, keeper.code if keeper.asked else code
            if code:
                failed.append(entry)
    return failed, 0


def _command(entry: Entry, seconds: float | None, runs: Path, results: Path) -> list[str]:
    """What makes the run, in a process of its own."""
    words = [*entry.words, "--runs", str(runs), "--results", str(results)]
    words += ["--resume"] if entry.words[0] == "train" else []  # a sweep always does
    if entry.words[0] == "train" and torch.cuda.device_count() > 1:
        words += ["--devices", "1"]  # as a sweep has it: each further device would add a batch of its own
    words += ["--max-time", format_time(seconds)] if seconds is not None else []
    # -P: what lies in the folder where it is called is not what is imported
    return [sys.executable, "-P", "-c", "from rtx.cli import main; main()", *words]


class Keeper:
    """Waits for one run at a time; asked to stop, it asks the run to, and waits until that has saved.

    A run has a process group of its own, so that it is asked once, and by the keeper, whether a signal was meant for
    one process or for a group. Ctrl-C is handed on each time: the second stops a run at once.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.run: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator["Keeper"]:
        """Signals are the keeper's as long as this lasts."""
        keeper = cls()
        before = {number: signal.signal(number, keeper._note) for number in STOP}
        try:
            yield keeper
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def code(self) -> int:
        """What to end with."""
        return 128 + self.asked[0] if self.asked else TIMEOUT

    def wait_for(self, command: list[str]) -> int:
        """The exit code of a process."""
        with subprocess.Popen(command, process_group=0) as self.run:
            if self.asked:  # while it was made
                self.run.terminate()
            code = self.run.wait()
        self.run = None
        return code

    def _note(self, number: int, _: FrameType | None) -> None:
        again = number in self.asked and number != signal.SIGINT
        self.asked.append(number)
        if self.run is not None and not again:
            self.run.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
