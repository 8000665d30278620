"""From measurements to what the JSON file holds, and from that to the tables."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.case import Case, Contender, Target
from benchmarks.measure import Timing, interleaved, paired_ratio, peak_memory

RESULTS = Path(__file__).parent / "results"
Result = dict[str, Any]
"""A run of the benchmark in plain values, as in its JSON file."""

Quantities = Mapping[str, Mapping[str, Sequence[float]]]
"""Quantity → contender → a number for each round, or one."""

SIGNS = {">=": "≥", "<=": "≤"}


def measured(case: Case, clock: str, rounds: int, seconds: float, device: str) -> Result:
    """Time a case and hold it to its targets, in plain values."""
    timings = interleaved(case.contenders, case.rounds or rounds, seconds, device)
    pairs = list(zip(case.contenders, timings, strict=True))
    times = {one.name: [one.times * value for value in getattr(timing, clock)] for one, timing in pairs}
    peaks = {one.name: [peak_memory(one, device)] for one in case.contenders if one.memory}
    counts = {one.name: [one.multiply_adds] for one in case.contenders if one.multiply_adds}
    quantities: Quantities = {"time": times, "peak": peaks, "multiply_adds": counts}
    rows = [_row(one, timing, *peaks.get(one.name, ())) for one, timing in pairs]
    held = [asdict(t) | {"value": _value(t, quantities[t.quantity])} for t in case.targets if _there(t, quantities)]
    return {"title": case.title, "rows": rows, "targets": held, "notes": case.notes}


def verdict(target: Mapping[str, Any]) -> str:
    """ "met" or "not met"; nothing where there is no bound."""
    if target["bound"] is None:
        return ""
    value, bound = target["value"], target["bound"]
    return "met" if (value >= bound if target["sense"] == ">=" else value <= bound) else "not met"


def read(path: Path) -> Result:
    """The result in a file.

    Raises:
        ValueError: if it holds none.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected JSON, the file is damaged ({error})") from None
    if not isinstance(result, dict) or not {"cases", "ceiling", "hardware"} <= set(result):
        raise ValueError(f"{path}: expected a result of the benchmark, got other JSON")
    return result


def machine(result: Result) -> str:
    """Where and with what it was measured, in one line; and the machine's ceiling in a second."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    reached = ", ".join(f"{name} {value:.3g}" for name, value in result["ceiling"].items())
    return f"{result['hardware']}; {versions}; {result['date']}; {result['command']}\n{reached}"


def times(case: Result) -> Table:
    """What was timed in a case."""
    drawn = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False, title=f"\n{case['title']}", title_justify="left")
    drawn.add_column("", no_wrap=True)
    for name in ("CPU ms", "wall ms", "first s", "MiB", "G madd"):
        drawn.add_column(name, justify="right")
    for row in case["rows"]:
        numbers = [row[key] for key in ("processor_ms", "wall_ms", "first_s", "peak_mib", "multiply_adds_g")]
        drawn.add_row(row["name"], *map(_written, numbers))
    return drawn


def _written(number: float | None) -> str:
    """Three digits."""
    if number is None:
        return ""
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def targets(result: Result) -> Table:
    """The ratios of all cases, and whether targets are met."""
    drawn = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False, title="\nRatios", title_justify="left")
    for name in ("case", "ratio", "measured", "target", ""):
        drawn.add_column(name, justify="right" if name in ("measured", "target") else "left")
    for name, case in result["cases"].items():
        for i, target in enumerate(case["targets"]):
            bound = "" if target["bound"] is None else f"{SIGNS[target['sense']]} {_written(target['bound'])}"
            quantity = "" if target["quantity"] == "time" else target["quantity"].replace("_", "-") + ": "
            cells = [name if not i else "", quantity + target["text"]]
            drawn.add_row(*cells, _written(target["value"]), bound, _judged(target, result))
        drawn.add_section()
    return drawn


def _judged(target: Mapping[str, Any], result: Result) -> str:
    """A quick run's sizes are too small for a verdict."""
    return "" if result["quick"] else verdict(target)


def _row(one: Contender, timing: Timing, peak: float | None = None) -> Result:
    return {
        "name": one.name,
        "processor_ms": one.times * statistics.median(timing.processor),
        "wall_ms": one.times * statistics.median(timing.wall),
        "first_s": timing.first,
        "rounds": len(timing.wall),
        "peak_mib": peak,
        "multiply_adds_g": None if one.multiply_adds is None else one.multiply_adds / 1e9,
    }


def _there(target: Target, quantities: Quantities) -> bool:
    found = quantities[target.quantity]
    return target.over in found and (target.under is None or target.under in found)


def _value(target: Target, found: Mapping[str, Sequence[float]]) -> float:
    over = found[target.over]
    if target.under is None:
        return statistics.median(over)
    under = found[target.under]
    if target.difference:
        return statistics.median(over) - statistics.median(under)
    return paired_ratio(over, under)
