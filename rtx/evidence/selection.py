"""Which runs of the ledger may be compared with each other, and how their scores are written."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import mean

from rtx.evidence.ledger import Result, option, variant_of
from rtx.evidence.tables import chosen, cut_at, machine
from rtx.training.recipe import Recipe

EQUAL_SIZES = ("same-parameters", "same-flops")  # variants that make models equal in size
TRAINING = ("learning_rate", "epochs", "seconds")  # settings that change neither the model nor its data
TUNED = ("norm", "position", "dropout")  # settings of a model that validation chooses in the variant strong


def unchanged(run: Result) -> bool:
    """Return whether a run has the model and the data of its row, apart from what its variant tunes."""
    tuned = TUNED if variant_of(run) == "strong" else ()
    return set(re.findall(r"\+(\w+)=", run.variant)) <= {*TRAINING, *tuned}


def without_tuned(run: Result) -> str:
    """Return a run's variant. For the variant strong, leave out the values that validation chooses."""
    tuned = "|".join(("learning_rate", *TUNED))
    return re.sub(rf"\+({tuned})=[^+]+", "", run.variant) if variant_of(run) == "strong" else run.variant


def is_full(run: Result) -> bool:
    """Return whether a run had the recipe's full size and all its training."""
    return run.scale == "full" and run.budget is None


def is_solved(run: Result) -> bool:
    """Return whether a toy problem is solved: all of a thousand sequences of the validation split, as for `stop_at`."""
    return run.validation >= 0.9995


def counts(run: Result, variant: str | None) -> bool:
    """Return whether a run is of a variant; without one, of any variant that does not make the models equal."""
    wanted = variant_of(run) == variant if variant else not run.variant.startswith("same-")
    other_sizes = variant in EQUAL_SIZES and run.scale != "full"  # a smaller scale has sizes of its own
    return wanted and not other_sizes and unchanged(run)


def of_variant(recipe: Recipe, row: str, groups: list[list[Result]], variant: str | None) -> list[list[Result]]:
    """Return a row's runs; where a variant does not change the row, its runs get the name of that variant."""
    own = recipe.default_variant
    if variant is None or replace(recipe.plan(row, variant), variant=own) != recipe.plan(row):
        return groups
    return renamed(groups, own, variant)


def renamed(groups: list[list[Result]], old: str, new: str) -> list[list[Result]]:
    """Return the runs, with the name of one variant replaced by another."""
    found = []
    for runs in groups:
        variant = runs[0].variant.replace(old, new, 1) if variant_of(runs[0]) == old else runs[0].variant
        found.append([replace(run, variant=variant) for run in runs])
    return found


def of_each_rate(groups: Sequence[list[Result]]) -> list[list[Result]]:
    """Return the runs by their rate: of each seed the longest, because a shorter run is only its beginning."""
    found: dict[str, dict[int, Result]] = {}
    for run in sorted((run for group in groups for run in group), key=lambda run: (is_full(run), cut_at(run.budget))):
        found.setdefault(run.variant, {})[run.seed] = run
    return [[of_rate[seed] for seed in sorted(of_rate)] for of_rate in found.values()]


def with_detail(groups: list[list[Result]], detail: str | None) -> list[list[Result]]:
    """Return the runs with a detail as their test score; runs that did not measure it are left out."""
    if detail is None:
        return groups
    measured = [runs for runs in groups if all(detail in run.details for run in runs)]
    return [[replace(run, test=run.details[detail]) for run in runs] for runs in measured]


def under_one_budget(
    found: dict[str, list[list[Result]]], rows: Sequence[str], best: Callable[..., list[Result]]
) -> dict[str, list[Result]]:
    """Return for each row its runs under the variant, scale and budget that the first row and most others share.

    They share the precision, too, and the machine where seconds are the budget. If several budgets have the same number
    of rows, full runs come first, then runs with all their training, then most seeds. Of several rates,
    `tables.chosen` takes one.
    """
    groups: dict[tuple[str | None, ...], dict[str, list[list[Result]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for runs in found[row]:
            first = runs[0]
            how = variant_of(first), first.scale, first.budget, machine(first), *option(first.command, "--precision")
            groups[how][row].append(runs)
    candidates = [{row: of_best_rate(rates, best) for row, rates in shared.items()} for shared in groups.values()]

    def order(shared: dict[str, list[Result]]) -> tuple[bool, int, bool, bool, int]:
        run = next(iter(shared.values()))[0]
        return rows[0] in shared, len(shared), is_full(run), run.budget is None, min(map(len, shared.values()))

    return max(candidates, key=order, default={})


def of_best_rate(groups: list[list[Result]], best: Callable[..., list[Result]]) -> list[Result]:
    """Return the runs of the best rate, with the rates that it was chosen from."""
    tried: dict[str, float | None] = {runs[0].variant: mean_validation(runs) for runs in groups}
    runs = chosen(groups, best)
    return [replace(run, chosen_from=run.chosen_from or tried) for run in runs] if len(tried) > 1 else runs


def scores(runs: Sequence[Result], highest: bool) -> list[float]:
    """Return the test scores, larger is better; one that is not finite is minus infinity."""
    signed = [run.test if highest else -run.test for run in runs]
    return [score if math.isfinite(score) else -math.inf for score in signed]


def mean_validation(runs: Sequence[Result]) -> float:
    """Return the mean of the validation scores."""
    return mean(run.validation for run in runs)


def rates(*groups: Sequence[Result]) -> str:
    """Return, in words, for which rows validation chose the learning rate among several."""
    swept = [runs[0].model for runs in groups if any(r.chosen_from or "+learning_rate=" in r.variant for r in runs)]
    if len(swept) == len(groups):
        return "best of several rates"
    return f"best of several rates for {', '.join(dict.fromkeys(swept))}" if swept else "one rate"


def budget(run: Result) -> str:
    """Return, in words, how much training a run had."""
    return "full budget" if is_full(run) else ", ".join(filter(None, (f"scale {run.scale}", run.budget)))


def seeds(*groups: Sequence[Result]) -> str:
    """Return how many seeds the groups have, in words: the fewest and the most."""
    fewest, most = min(map(len, groups)), max(map(len, groups))
    return f"{fewest} to {most} seeds" if fewest < most else f"{most} seed{'s' if most > 1 else ''}"
