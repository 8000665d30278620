"""Find what is wrong with the ledger: a number is worth as much as what stands behind it."""

import math
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from rtx.evidence.ledger import LEDGER, Result, read_result, variant_of
from rtx.tasks import task_by_name
from rtx.training.provenance import git
from rtx.training.recipe import load_recipe, parse_setting, recipe_names


def audit(ledger: Path = LEDGER) -> list[str]:
    """Return a sentence for each fault of each file; none if every number can be traced and measured again.

    A file must be a run of a recipe's row. It must name a clean commit of this repository's history, the command that
    repeats the run, and the data that this command would use today.
    """
    return [f"{path}: {fault}" for path in sorted(ledger.glob("**/*.json")) for fault in _faults(path)]


def _faults(path: Path) -> Iterator[str]:
    try:
        result = read_result(path)
    except ValueError as error:
        yield str(error).removeprefix(f"{path}: ")
        return
    if result.recipe not in recipe_names() or result.model not in load_recipe(result.recipe).models:
        yield f"no recipe has a row {result.model!r} of {result.recipe!r}"
        return
    if path.parent.name != result.recipe:
        yield f"the run is of {result.recipe}, but its folder is {path.parent.name}"
    if not (math.isfinite(result.validation) and math.isfinite(result.test) and result.epoch >= 1):
        yield "a score is not finite, or the epoch is below 1"
    if result.commit is None or result.commit.endswith("-dirty"):
        yield f"it was not made by a commit: {result.commit}"
    elif is_in_history(result.commit) is False:
        yield f"its commit is not in this repository: {result.commit}"
    try:
        words = shlex.split(result.command)
    except ValueError as error:
        yield f"its command cannot be read ({error}): {result.command}"
        return
    yield from _command(result, words)
    yield from _data(result, words)


@cache
def is_in_history(commit: str) -> bool | None:
    """Return whether a commit is in this history; None if git cannot say (a shallow clone, no git)."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return None
    return git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def _command(result: Result, words: list[str]) -> Iterator[str]:
    """Compare what a command says with what the file says."""
    if words[:1] != ["rtx"] or words[1:2] not in (["train"], ["sweep"]):
        yield f"its command is not `rtx train` or `rtx sweep`: {result.command}"
        return
    if words[2:4] != [result.recipe, result.model]:
        yield f"its command makes another row: {result.command}"
        return
    flags = {
        "--seed": ("0", str(result.seed)),
        "--scale": ("full", result.scale),
        "--variant": (load_recipe(result.recipe).default_variant, variant_of(result)),
    }
    for flag, (default, expected) in flags.items():
        *more, given = _values(words, flag) or [default]
        if more:
            yield f"its command has {flag} twice: {result.command}"
        elif given != expected:
            yield f"its command has {flag} {given}, but the file says {expected}"


def _data(result: Result, words: list[str]) -> Iterator[str]:
    """Compare the data, the variant and the epochs with what the command would make today."""
    recipe, variant = load_recipe(result.recipe), variant_of(result)
    known = variant if variant in recipe.variants else None
    try:
        plan = recipe.plan(result.model, known, _overrides(words), result.scale)
        expected = task_by_name(plan.task, **plan.task_arguments).sha256()
        epochs = min([plan.settings.epochs, *map(int, _values(words, "--epochs"))])
    except (OSError, TypeError, ValueError) as error:
        yield f"its data cannot be found: {error}"
        return
    if words[1:2] == ["train"] and plan.variant != result.variant:
        yield f"its command makes the variant {plan.variant}, not {result.variant}"
    if words[1:2] == ["train"] and result.epoch > epochs:
        yield f"its epoch is {result.epoch}, but its command trains for {epochs}"
    if result.data_sha256 != expected:
        yield f"its data has the checksum {result.data_sha256}, today's data has {expected}"


def _overrides(words: list[str]) -> dict[str, Any]:
    """Return what a command sets.

    Raises:
        ValueError: if a setting is not `key=value`, or is a path to something that is not a file.
    """
    given = _values(words, "--set")
    overrides = dict(map(parse_setting, given if words[1:2] == ["train"] else []))  # a sweep has lists
    if "path" in overrides and not Path(str(overrides["path"])).is_file():
        raise ValueError(f"path: expected a file, found none at {overrides['path']}")
    return overrides


def _values(words: list[str], flag: str) -> list[str]:
    """Return the values of a flag in a command, written as `--flag value` or `--flag=value`."""
    joined = f"{flag}="
    behind = [after for word, after in pairwise(words) if word == flag]
    return behind + [word.removeprefix(joined) for word in words if word.startswith(joined)]
