"""The ledger: one JSON file for each finished run, with its numbers and where they come from."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtx.training.files import file_name, write_whole
from rtx.training.provenance import stamp

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LEDGER = Path("results")


@dataclass(frozen=True)
class Result:
    """A finished run. `validation` chose the epoch. `test` was measured once, with the weights of that epoch."""

    recipe: str
    model: str
    variant: str
    scale: str
    data: str
    data_sha256: str | None
    metric: str  # name and unit of `validation`, and of `test` if there are no `details`
    seed: int  # of weights, order and dropout
    epoch: int  # counted from 1
    validation: float
    test: float
    parameters: int  # how many numbers received a gradient
    seconds: float  # of training and validation; all parts of a resumed run together
    hardware: str
    versions: dict[str, str]
    commit: str | None
    command: str  # repeats the run
    budget: str | None  # what cut the run short; None for a full run
    details: dict[str, Any] = field(default_factory=dict)  # other scores of the test split; `test` is the first of them
    # if a sweep chose the settings: each combination with its validation score (None: the run failed)
    chosen_from: dict[str, float | None] = field(default_factory=dict)
    # "sha256" of the recipe's file, and whether it is "in_commit" (None: no commit); older results lack both
    recipe_file: dict[str, Any] = field(default_factory=dict)
    earlier_commits: list[str | None] = field(default_factory=list)  # of the parts before the last, if it was resumed


def variant_of(run: Result) -> str:
    """Return a run's variant without the settings that were changed, such as the learning rate."""
    return run.variant.split("+")[0]


def option(command: str, flag: str) -> list[str]:
    """Return the values that a command gives to a flag."""
    return [value for word, value in pairwise(_words(command)) if word == flag]


@cache  # a table asks for several flags of each of many commands
def _words(command: str) -> list[str]:
    return shlex.split(command)


def write_result(result: Result, ledger: Path = LEDGER, ended: str | None = None) -> Path:
    """Add a run to the ledger and return its file. The file is written whole or not at all.

    `ended` says when the training ended, as `stamp` gives it; default: now. It identifies the run: one that is killed
    here and resumed gets the same file. Of a run that is in the ledger already, only `chosen_from` is changed.
    """
    folder = ledger / result.recipe
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name(f"{result.model}-{result.variant}")
    path = folder / f"{name}-s{result.seed}-{ended or stamp()}.json"
    if path.exists():  # the versions and the commit of the finished run are the right ones
        before = read_result(path)
        result = replace(before, chosen_from=result.chosen_from or before.chosen_from)
    write_whole(path, (json.dumps(asdict(result), indent=2) + "\n").encode())
    return path


def read_results(recipe: str, ledger: Path = LEDGER) -> Iterator[Result]:
    """Yield every run of a recipe, in the order of the files' names. See `read_result`."""
    for path in sorted((ledger / recipe).glob("*.json")):
        yield read_result(path)


def read_result(path: Path) -> Result:
    """Return the run in a file. Unknown keys are ignored, such as the checksum of older files."""
    if not path.is_file():  # reading a device may never end
        raise ValueError(f"{path}: expected a file, found something else or nothing")
    try:
        result = _results().validate_json(path.read_bytes())
        _words(result.command)  # an open quote is an error
        return result
    except ValueError as error:  # pydantic's ValidationError is one
        raise ValueError(f"{path}: the file is damaged or no run: {error}") from None


@cache
def _results() -> "TypeAdapter[Result]":
    from pydantic import ConfigDict, TypeAdapter, with_config  # half a second, so only where a ledger is read

    return TypeAdapter(with_config(ConfigDict(strict=True))(Result))
