"""Which runs of the ledger may be held beside each other, and how their scores are said."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from statistics import mean

from rtx.evidence.ledger import Result, variant_of
from rtx.evidence.tables import chosen, deviation, machine
from rtx.training.recipe import Recipe

SEEDS = 3  # at least, for a verdict
EQUAL_SIZES = ("same-parameters", "same-flops")  # variants that are sizes
TRAINING = ("learning_rate", "epochs", "seconds")  # settings that leave a row its model and data


def unchanged(run: Result) -> bool:
    """Whether it was the model and the data of its row: nothing was set but what `TRAINING` names."""
    return set(re.findall(r"\+(\w+)=", run.variant)) <= set(TRAINING)


def is_full(run: Result) -> bool:
    """Whether it was trained at the recipe's full size and to its end."""
    return run.scale == "full" and run.budget is None


def had_epochs(run: Result, least: int | None) -> bool:
    """Whether it was trained to its end, or cut after no fewer epochs than that."""
    cut = _cut_at(run)
    return is_full(run) or (cut is not None and least is not None and cut >= least)


def is_solved(run: Result) -> bool:
    """Whether a toy problem is solved: all of a thousand, of validation, which ends the training, or of the test."""
    return max(run.validation, run.test) >= 0.9995


def before(one: Result, other: Result) -> bool | None:
    """Whether the one solved its toy problem in an epoch before the other, or None if a cut came before that was told.

    Whoever was cut may have solved it in the next epoch.
    """

    def earliest(run: Result) -> float:
        if is_solved(run):
            return run.epoch
        return inf if is_full(run) else (_cut_at(run) or 0) + 1

    if is_solved(one) and one.epoch < earliest(other):
        return True
    return False if is_solved(other) and other.epoch <= earliest(one) else None


def _cut_at(run: Result) -> int | None:
    """After how many epochs it was cut, if by these alone."""
    cut = re.fullmatch(r"(\d+) of \d+ epochs", run.budget or "")
    return int(cut[1]) if cut else None


def settles(runs: Sequence[Result]) -> bool:
    """Whether so many runs are enough for a verdict: full ones of at least `SEEDS` seeds."""
    return is_full(runs[0]) and len(runs) >= SEEDS


def counts(run: Result, variant: str | None) -> bool:
    """Whether it is of that variant, or, if none is given, of any that makes the models equal in nothing."""
    wanted = variant_of(run) == variant if variant else not run.variant.startswith("same-")
    other_sizes = variant in EQUAL_SIZES and run.scale != "full"  # a scale's own, which undo the variant's
    return wanted and not other_sizes and unchanged(run)


def of_variant(recipe: Recipe, row: str, groups: list[list[Result]], variant: str | None) -> list[list[Result]]:
    """A row's runs, where a variant leaves the row as it is by the name of that variant: they are its runs, too."""
    own = recipe.default_variant
    if variant is None or replace(recipe.plan(row, variant), variant=own) != recipe.plan(row):
        return groups
    return renamed(groups, own, variant)


def renamed(groups: list[list[Result]], old: str, new: str) -> list[list[Result]]:
    """The runs, those of one variant by the name of another."""

    def one(run: Result) -> Result:
        return replace(run, variant=run.variant.replace(old, new, 1)) if variant_of(run) == old else run

    return [[one(run) for run in runs] for runs in groups]


def of_chosen_rates(groups: Sequence[list[Result]]) -> list[Result]:
    """A run for each seed: the one that was chosen for it among several rates, if every seed of three has one.

    Else of several rates the one with most seeds, and of these the one that validation was first content with.
    """
    swept = {run.seed: run for group in groups for run in group if run.chosen_from}
    if len(swept) >= SEEDS:
        return [swept[seed] for seed in sorted(swept)]
    order = [(len(group), mean_validation(group), -mean(run.epoch for run in group)) for group in groups]
    return groups[order.index(max(order))] if groups else []


def of_each_rate(groups: Sequence[list[Result]]) -> list[list[Result]]:
    """Runs by their rate, of each seed the one that was trained the longest: a shorter one is its beginning."""
    found: dict[str, dict[int, Result]] = {}
    for run in sorted((run for group in groups for run in group), key=lambda run: (is_full(run), _cut_at(run) or 0)):
        found.setdefault(run.variant, {})[run.seed] = run
    return [[of_rate[seed] for seed in sorted(of_rate)] for of_rate in found.values()]


def has(runs: Sequence[Result], detail: str | None) -> bool:
    """Whether all runs measured that detail, if one is given."""
    return detail is None or all(detail in run.details for run in runs)


def scored(runs: list[Result], detail: str | None) -> list[Result]:
    """The runs with that detail as their test score, if one is given."""
    return runs if detail is None else [replace(run, test=run.details[detail]) for run in runs]


def under_one_budget(
    found: dict[str, list[list[Result]]], rows: Sequence[str], best: Callable[..., list[Result]]
) -> dict[str, list[Result]]:
    """Of each row the runs under the variant, scale and budget that the first and most of the others share.

    Where seconds are the budget, they share the machine, too. Of as many rows, full ones go first, then those that were
    trained to their end, then those of most seeds. Where a row was run with several rates, those that are `chosen`.
    """
    groups: dict[tuple[str, str, str, str], dict[str, list[Result]]] = {}
    for row in rows:
        for runs in found[row]:
            first = runs[0]
            shared = groups.setdefault((variant_of(first), first.scale, first.budget or "", machine(first) or ""), {})
            shared[row] = chosen([*([shared[row]] if row in shared else []), runs], best)

    def order(shared: dict[str, list[Result]]) -> tuple[bool, int, bool, bool, int]:
        run = next(iter(shared.values()))[0]
        return rows[0] in shared, len(shared), is_full(run), run.budget is None, min(map(len, shared.values()))

    shared_by_most = max(groups.values(), key=order, default={})
    return {row: _with_rates(runs, found[row]) for row, runs in shared_by_most.items()}


def _with_rates(runs: list[Result], lines: Sequence[list[Result]]) -> list[Result]:
    """The runs, with what they were chosen from, the recipe's rate or another: their row's under the same budget."""

    def way(run: Result) -> tuple[str, str, str | None]:
        return variant_of(run), run.scale, run.budget

    tried: dict[str, float | None] = {
        line[0].variant: mean_validation(line) for line in lines if way(line[0]) == way(runs[0])
    }
    return [replace(run, chosen_from=run.chosen_from or tried) for run in runs] if len(tried) > 1 else runs


def by_more_than_spread(
    mine: Sequence[Result], other: Sequence[Result], highest: bool, times: float = 1, margin: float = 0.0
) -> bool:
    """Whether the one is ahead of the other by more than the standard deviations of both together, so many times.

    Its lead is counted from `margin` on; below 0, it may be that much behind.
    """
    return lead(mine, other, highest) - margin > times * _both_spreads(mine, other)


def within_spread(mine: Sequence[Result], other: Sequence[Result]) -> bool:
    """Whether there is a spread, and neither is ahead of the other by more than both together."""
    both = _both_spreads(mine, other)
    return both > 0 and abs(lead(mine, other, highest=True)) <= both


def _both_spreads(*groups: Sequence[Result]) -> float:
    return sum(deviation([run.test for run in runs]) if len(runs) > 1 else 0.0 for runs in groups)


def lead(mine: Sequence[Result], other: Sequence[Result], highest: bool) -> float:
    """By how much the one's mean test score is the better."""
    found, theirs = (mean(run.test for run in runs) for runs in (mine, other))
    return found - theirs if highest else theirs - found


def leaning(true: Sequence[bool]) -> str:
    """Which way runs lean that do not settle a claim, by whether each bears it out, in words."""
    return "for it" if all(true) else "both ways" if any(true) else "against it"


def mean_validation(runs: Sequence[Result]) -> float:
    """The mean of their validation scores."""
    return mean(run.validation for run in runs)


def spread(runs: Sequence[Result], digits: int = 2) -> str:
    """Mean ± standard deviation of their test scores, of one run its score."""
    tests = [run.test for run in runs]
    middle = f"{mean(tests):.{digits}f}"
    return f"{middle} ± {deviation(tests):.{digits}f}" if len(tests) > 1 else middle


def rates(*groups: Sequence[Result]) -> str:
    """Of which rows validation chose the rate among several, in words: in a sweep, or by a run of each."""
    swept = [
        runs[0].model for runs in groups if any(run.chosen_from or "+learning_rate=" in run.variant for run in runs)
    ]
    if len(swept) == len(groups):
        return "best of several rates"
    return f"best of several rates for {', '.join(dict.fromkeys(swept))}" if swept else "one rate"


def compared(runs: Sequence[Result]) -> str:
    """Among how many rates validation chose, and for whom, in words."""
    tried = max(len(run.chosen_from) for run in runs)
    by_each = all(run.chosen_from for run in runs)
    return f"the best of {tried} by {'each' if by_each else 'one'} seed" if tried else "no rates compared"


def cuts(runs: Sequence[Result]) -> str:
    """What cut runs short, and how many if not all, in words that follow others; nothing if nothing did."""
    found = Counter(run.budget for run in runs if run.budget)
    return "".join(f", {cut}" if many == len(runs) else f", {many} cut at {cut}" for cut, many in found.items())


def budget(run: Result) -> str:
    """How far it was trained, in words."""
    return "full budget" if is_full(run) else ", ".join(filter(None, (f"scale {run.scale}", run.budget)))


def seeds(*groups: Sequence[Result]) -> str:
    """How many seeds the groups have, the fewest and the most."""
    fewest, most = min(map(len, groups)), max(map(len, groups))
    return f"{fewest} to {most} seeds" if fewest < most else f"{most} seed{'s' if most > 1 else ''}"
