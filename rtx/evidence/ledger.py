"""The ledger: one JSON file per finished run, holding its numbers, where they come from, and a checksum over these."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from rtx.training.files import file_name, write_whole
from rtx.training.provenance import stamp

LEDGER = Path("results")
LARGEST = 2**20  # bytes; a run's file has one or two thousand


@dataclass(frozen=True)
class Result:
    """A finished run. `validation` chose the epoch; `test` was looked at once, for that epoch.

    Args:
        recipe, model, variant, scale: what was run.
        data, data_sha256: on which data.
        metric: the name and unit of `validation`, and of `test` unless `details` has others, of which it is the first.
        seed: of weights, order and dropout.
        epoch: counted from 1.
        parameters: numbers that received a gradient.
        seconds: of training and validation, all resumed parts together.
        hardware, versions, commit, command: by what, and how to run it again.
        budget: None, or what cut the run short of its recipe.
        details: what else was measured on the test split, by name: of a translator what `test` is the first of.
        chosen_from: if a sweep chose the settings, each combination that it tried with its validation, None where the
            run failed.
    """

    recipe: str
    model: str
    variant: str
    scale: str
    data: str
    data_sha256: str | None
    metric: str
    seed: int
    epoch: int
    validation: float
    test: float
    parameters: int
    seconds: float
    hardware: str
    versions: dict[str, str]
    commit: str | None
    command: str
    budget: str | None
    details: dict[str, Any] = field(default_factory=dict)
    chosen_from: dict[str, float | None] = field(default_factory=dict)


def variant_of(run: Result) -> str:
    """Its variant, without the settings that were changed, such as a rate."""
    return run.variant.split("+")[0]


def write_result(result: Result, ledger: Path = LEDGER, ended: str | None = None) -> Path:
    """Add a run to the ledger, under a name of its own; the file is whole or not there.

    A run that is there already stays as it is, though a sweep may add what it was chosen from.

    Args:
        result: of the run.
        ledger: the folder.
        ended: the `stamp` of when its training did, which tells it from others; now, if not given. A run that is
            killed while it is written here, and resumed, takes the same name again.

    Raises:
        ValueError: if the file that is there is damaged.
        OSError: if it cannot be written.
    """
    folder = ledger / result.recipe
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name(f"{result.model}-{result.variant}")
    path = folder / f"{name}-s{result.seed}-{ended or stamp()}.json"
    if path.exists():  # finished before, and taken up again: what made it then is not what is here now
        before = read_result(path)
        result = replace(before, chosen_from=result.chosen_from or before.chosen_from)
    table = asdict(result)
    write_whole(path, (json.dumps(table | {"sha256": _sha256(table)}, indent=2) + "\n").encode())
    return path


def _sha256(table: dict[str, Any]) -> str:
    """Of the values, however they are laid out in a file."""
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def read_results(recipe: str, ledger: Path = LEDGER) -> Iterator[Result]:
    """Every run of a recipe, in the order of the files' names.

    Raises:
        ValueError: naming the file, if one is not a run: damaged, a key missing or one too many.
    """
    for path in sorted((ledger / recipe).glob("*.json")):
        yield read_result(path)


def read_result(path: Path) -> Result:
    """One run.

    Raises:
        ValueError: naming the file, if it is damaged, or a key is missing, unknown or of another type.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        table: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # JSON's and UTF-8's are ValueErrors, too
        raise ValueError(f"{path}: expected JSON, the file is damaged ({error})") from None
    checked = table.pop("sha256", None) if isinstance(table, dict) else None
    if checked is not None and checked != _sha256(table):
        raise ValueError(f"{path}: the file is damaged, its checksum does not fit")
    keys = {f.name for f in fields(Result)}
    if not isinstance(table, dict) or set(table) | {"details", "chosen_from"} != keys:  # older runs have none
        odd = ", ".join(sorted(keys ^ set(table))) if isinstance(table, dict) else type(table).__name__
        raise ValueError(f"{path}: expected the keys of a run, missing or unknown: {odd}")
    for name, kind in get_type_hints(Result).items():
        if not _is(table.get(name, {}), kind):
            raise ValueError(f"{path}: expected {name} to be {kind}, got {table[name]!r:.60}")
    return Result(**table)


def _is(value: Any, kind: Any) -> bool:
    """Whether a value out of JSON is of a field's type."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    plain = tuple(get_origin(one) or one for one in kinds)
    if isinstance(value, bool):
        return bool in plain
    if isinstance(value, int) and abs(value) >= 2**63:  # no float holds it, or no counter comes near it
        return False
    return isinstance(value, (*plain, int) if float in plain else plain)
