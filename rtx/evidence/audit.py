"""What is wrong with the ledger: a number is worth what stands behind it."""

import json
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
from rtx.training.rebuild import check_sizes
from rtx.training.recipe import load_recipe, parse_setting, recipe_names


def audit(ledger: Path = LEDGER) -> list[str]:
    """A sentence for each fault of each file: none, if every number can be traced and run again.

    A file must be whole and name a row of a recipe, a clean commit of this repository's history, the command that makes
    it, by the seed, scale and variant that it says, and the data that the task of recipe and command has today.
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
    if "sha256" not in json.loads(path.read_text()):
        yield "it has no checksum of its own"
    if path.parent.name != result.recipe:
        yield f"a run of {result.recipe} lies in the folder of {path.parent.name}"
    if not (math.isfinite(result.validation) and math.isfinite(result.test) and result.epoch >= 1):
        yield "its numbers are not finite, or its epoch is below 1"
    yield from _commit(result)
    try:
        words = shlex.split(result.command)
    except ValueError as error:
        yield f"its command cannot be read ({error}): {result.command}"
        return
    yield from _command(result, words)
    yield from _data(result, words)


def _commit(result: Result) -> Iterator[str]:
    if result.commit is None or result.commit.endswith("-dirty"):
        yield f"it was not made by a commit: {result.commit}"
    elif is_in_history(result.commit) is False:
        yield f"its commit is not in this repository: {result.commit}"


@cache
def is_in_history(commit: str) -> bool | None:
    """Whether it is an ancestor of what is checked out; None where git cannot tell: no repository, or a shallow one."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return None
    return git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def _data(result: Result, words: list[str]) -> Iterator[str]:
    recipe, variant = load_recipe(result.recipe), variant_of(result)
    known = variant if variant in recipe.variants else None
    try:
        plan = recipe.plan(result.model, known, _overrides(words), result.scale)
        expected = task_by_name(plan.task, **plan.task_arguments).sha256()
        epochs = min([plan.settings.epochs, *map(int, _said(words, "--epochs"))])
    except (OSError, TypeError, ValueError) as error:
        yield f"its data cannot be told: {error}"
        return
    if words[1:2] == ["train"] and plan.variant != result.variant:
        yield f"its command makes the variant {plan.variant}, not {result.variant}"
    if words[1:2] == ["train"] and result.epoch > epochs:
        yield f"its epoch is {result.epoch}, and its command trains for {epochs}"
    if result.data_sha256 != expected:
        yield f"its data has the checksum {result.data_sha256}, today's is {expected}"


def _overrides(words: list[str]) -> dict[str, Any]:
    """What a command sets. The file it stands in may be anybody's: no size of it may cost much, no device be read.

    Raises:
        ValueError: if it is not `key=value`, too large, or a path to what is no file.
    """
    given = _said(words, "--set")
    overrides = dict(map(parse_setting, given if words[1:2] == ["train"] else []))  # a sweep's are lists
    check_sizes("--set", overrides)
    if "path" in overrides and not Path(str(overrides["path"])).is_file():
        raise ValueError(f"path: expected a file, found none at {overrides['path']}")
    return overrides


def _said(words: list[str], flag: str) -> list[str]:
    """What a command says behind a flag, or behind its "=", each time."""
    joined = f"{flag}="
    behind = [after for word, after in pairwise(words) if word == flag]
    return behind + [word.removeprefix(joined) for word in words if word.startswith(joined)]


def _command(result: Result, words: list[str]) -> Iterator[str]:
    if words[:1] != ["rtx"] or words[1:2] not in (["train"], ["sweep"]):
        yield f"its command is none of ours: {result.command}"
    elif words[2:4] != [result.recipe, result.model]:
        yield f"its command makes another row: {result.command}"
    else:
        own = load_recipe(result.recipe).default_variant
        for flag, default, made in (
            ("--seed", "0", str(result.seed)),
            ("--scale", "full", result.scale),
            ("--variant", own, variant_of(result)),
        ):
            said = _said(words, flag)
            if len(said) > 1:
                yield f"its command says {flag} twice: {result.command}"
            elif (asked := said[0] if said else default) != made:
                yield f"its command has {flag} {asked}, and it says {made}"
