"""Find what is wrong with the ledger: a number is worth as much as what stands behind it."""

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rtx.evidence.ledger import LEDGER, Result, option, read_result, variant_of
from rtx.tasks import task_by_name
from rtx.training.provenance import git
from rtx.training.recipe import Recipe, load_recipe, parse_setting


def audit(ledger: Path = LEDGER) -> list[str]:
    """Return a sentence for each fault of each file; none if every number can be traced and measured again.

    A file must be a run of a recipe's row. It must name a clean commit of this repository's history that has the
    recipe, the command that repeats the run, and the data that this command would use today.
    """
    return [f"{path}: {fault}" for path in sorted(ledger.glob("**/*.json")) for fault in _faults(path)]


def _faults(path: Path) -> Iterator[str]:
    try:
        yield from _of_run(path, read_result(path))
    except (OSError, TypeError, ValueError) as error:  # what cannot be read, or made again
        yield str(error).removeprefix(f"{path}: ")


def _of_run(path: Path, result: Result) -> Iterator[str]:
    if path.parent.name != result.recipe:
        yield f"the run is of {result.recipe}, but its folder is {path.parent.name}"
    if not (math.isfinite(result.validation) and math.isfinite(result.test) and result.epoch >= 1):
        yield "a score is not finite, or the epoch is below 1"
    if result.commit is None or result.commit.endswith("-dirty"):
        yield f"it was not made by a commit: {result.commit}"
    elif is_in_history(result.commit) is False:
        yield f"its commit is not in this repository: {result.commit}"
    if result.recipe_file.get("in_commit") is False:
        yield f"its recipe is not in its commit: the file had the checksum {result.recipe_file.get('sha256')}"
    recipe = load_recipe(result.recipe)
    yield from _command(result, recipe)
    yield from _data(result, recipe)


@cache
def is_in_history(commit: str) -> bool | None:
    """Return whether a commit is in this history; None if git cannot say (a shallow clone, no git)."""
    if git("rev-parse", "--is-shallow-repository") != "false\n":
        return None
    return git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def _command(result: Result, recipe: Recipe) -> Iterator[str]:
    """Compare what a command says with what the file says."""
    if not f"{result.command} ".startswith(f"rtx train {result.recipe} {result.model} "):
        yield f"its command makes another row: {result.command}"
    for flag, default, expected in (
        ("--seed", "0", str(result.seed)),
        ("--scale", "full", result.scale),
        ("--variant", recipe.default_variant, variant_of(result)),
    ):
        if (given := option(result.command, flag) or [default]) != [expected]:
            yield f"its command has {flag} {' and '.join(given)}, but the file says {expected}"


def _data(result: Result, recipe: Recipe) -> Iterator[str]:
    """Compare the data, the variant and the epochs with what the command would make today."""
    overrides = dict(map(parse_setting, option(result.command, "--set")))
    plan = recipe.plan(result.model, variant_of(result), overrides, result.scale)
    expected = task_by_name(plan.task, **plan.task_arguments).sha256()
    epochs = min([plan.settings.epochs, *map(int, option(result.command, "--epochs"))])
    if plan.variant != result.variant:
        yield f"its command makes the variant {plan.variant}, not {result.variant}"
    if result.epoch > epochs:
        yield f"its epoch is {result.epoch}, but its command trains for {epochs}"
    if result.data_sha256 != expected:
        yield f"its data has the checksum {result.data_sha256}, today's data has {expected}"
