"""`make bench`: measure, print the table, write the result."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from benchmarks import gpu, report
from benchmarks.case import CaseMaker, Options
from benchmarks.cases import CASES
from benchmarks.counting import add_bound
from benchmarks.measure import ceiling
from rtx.nn.ops import build
from rtx.nn.validate import check_choice
from rtx.training.files import write_whole
from rtx.training.provenance import commit, hardware, versions

ROUNDS, SECONDS = 5, 2.0
console = Console()


def bench(
    quick: Annotated[bool, typer.Option(help="Short sequences, two rounds: does it run?")] = False,
    only: Annotated[list[str] | None, typer.Option(help="This case only; may be given more than once.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="1 compares processor time, more compare wall time.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="At least so many of each.")] = ROUNDS,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Where the JSON goes; a whole run's to benchmarks/results.")] = None,
    show: Annotated[Path | None, typer.Option(help="Measure nothing: print the table of this JSON.")] = None,
) -> None:
    """Time and memory of rtx beside its peers, as ratios in one run."""
    if show is not None:
        shown = report.read(show)
        console.print(*map(report.times, shown["cases"].values()))
        _print(shown)
        return
    check_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: expected cpu, as torch finds no CUDA device here")
    known = _cases(device)
    for name in only or ():
        check_choice("only", name, known)
    if out is not None and (out.is_dir() or not out.resolve().parent.is_dir()):
        raise ValueError(f"out: expected a file in a folder that exists, got {str(out)!r}")
    torch.set_num_threads(threads)
    result = _measured(only or list(known), device, quick, threads, 2 if quick else rounds)
    _print(result)
    if out is None and not quick and not only:
        out = report.RESULTS / (f"{device}.json" if threads == 1 else f"{device}-{threads}-threads.json")
    if out is not None:
        write_whole(out, (json.dumps(result, indent=1) + "\n").encode())


def _measured(names: list[str], device: str, quick: bool, threads: int, rounds: int) -> report.Result:
    clock = "processor" if device == "cpu" and threads == 1 else "wall"
    best = ceiling(device, clock, quick) | (gpu.ceiling(device, quick) if device == "cuda" else {})
    options, notes = _options(device, quick)
    cases = {}
    for name in names:
        with console.status(f"{name} …"):
            case = _cases(device)[name](options)
            cases[name] = report.measured(case, clock, rounds, 0.0 if quick else SECONDS, device)
            if device == "cpu":
                add_bound(cases[name], best, clock)
            else:
                gpu.add_shares(cases[name], best)
        console.print(report.times(cases[name]))
    return {
        "device": device,
        "hardware": hardware(torch.device(device)),
        "threads": threads,
        "clock": clock,
        "quick": quick,
        "versions": versions(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
        "ceiling": best,
        "notes": notes,
        "cases": cases,
    }


def _cases(device: str) -> dict[str, CaseMaker]:
    """A GPU has cases of its own, before those of every device."""
    return {**gpu.CASES, **CASES} if device == "cuda" else CASES


def _options(device: str, quick: bool) -> tuple[Options, list[str]]:
    """What can be measured here, and sentences about what cannot."""
    notes = ["Quick: short sequences; there are no verdicts."] if quick else []
    missing = build.obstacle() if device == "cpu" else "they are for the CPU"
    if missing:
        notes.append(f"Without the operations in C++: {missing}.")
    return Options(device, quick, compiled=missing is None), notes


def _print(result: report.Result) -> None:
    console.print(report.targets(result))
    console.print(report.machine(result), highlight=False)
    for note in [*result["notes"], *(note for case in result["cases"].values() for note in case["notes"])]:
        console.print(note, highlight=False)


def main() -> None:
    """Run the benchmark; bad input ends it with one line and exit code 2."""
    try:
        typer.run(bench)
    except (ValueError, OSError) as error:
        typer.echo(f"benchmarks: {error}", err=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
