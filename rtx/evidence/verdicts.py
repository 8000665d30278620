"""How the ledger judges a claim, by its numbers and by nothing else.

They take full runs of at least three seeds. That one model is ahead of others holds if it is ahead of each, by more
than both spreads together, and fails if one of them is ahead of it by as much; that something is not needed holds
unless what has it is ahead by as much; what is said of one model alone holds if every seed bears it out, and fails if
none does. With less a claim stays open, and the sentence says which way the runs that there are lean.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from rtx.evidence.comparable import (
    SEEDS,
    budget,
    by_more_than_spread,
    counts,
    has,
    is_full,
    lead,
    leaning,
    mean_validation,
    of_variant,
    rates,
    renamed,
    scored,
    seeds,
    settles,
    spread,
    under_one_budget,
    within_spread,
)
from rtx.evidence.ledger import Result, variant_of
from rtx.evidence.tables import cells
from rtx.tasks import task_by_name
from rtx.training.recipe import load_recipe

HOLDS, FAILS, OPEN = "holds", "fails", "open"


@dataclass(frozen=True)
class Finding:
    """What became of a claim: "holds", "fails" or "open", and the numbers that say so."""

    verdict: str
    sentence: str


def better(
    recipe: str,
    one: str,
    others: Sequence[str],
    variant: str | None = None,
    detail: str | None = None,
    own: Mapping[str, str] = MappingProxyType({}),
    margin: float = 0.0,
) -> Callable[[Path], Finding]:
    """Whether a row is better than each of the others, by more than the `margin`, under one variant, scale and budget.

    The variant is the given one; without it, any but those that make the models equal in something ("same-…"). A row
    may have a variant of its `own`, which stands for the recipe's. A detail of that name is compared, if given, instead
    of the test score.
    """

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        task = task_by_name(loaded.task)
        highest = task.test_best == "max"
        groups = {
            row: [
                scored(runs, detail)
                for runs in renamed(of_variant(loaded, row, of_row, variant), own.get(row, ""), loaded.default_variant)
                if counts(runs[0], variant) and has(runs, detail)
            ]
            for row, of_row in cells(loaded, results).items()
        }
        found = under_one_budget(groups, [one, *others], max if task.best == "max" else min)
        rest = {other: found[other] for other in others if other in found}
        if one not in found or not rest:
            return Finding(OPEN, "not run")
        missing = [other for other in others if other not in found]
        return _compared(one, found[one], rest, missing, highest, variant, margin)

    return judge


def needs(recipe: str, row: str, *changes: str) -> Callable[[Path], Finding]:
    """Whether a row is better than itself with each of these settings, such as "heads=0", by the recipe's variant."""

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        groups = {runs[0].variant: runs for runs in cells(loaded, results)[row] if is_full(runs[0])}
        found = {change: groups.get(f"{loaded.default_variant}+{change}") for change in changes}
        rest = {change: runs for change, runs in found.items() if runs}
        if loaded.default_variant not in groups or not rest:
            return Finding(OPEN, "not run")
        highest = task_by_name(loaded.task).test_best == "max"
        missing = [change for change in changes if change not in rest]
        return _compared(row, groups[loaded.default_variant], rest, missing, highest)

    return judge


def no_worse(recipe: str, one: str, *others: str) -> Callable[[Path], Finding]:
    """Whether a row does without what others have: it holds unless one is ahead by more than both spreads together."""

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        task = task_by_name(loaded.task)
        runs = cells(loaded, results)
        groups = {row: [group for group in runs[row] if counts(group[0], None)] for row in (one, *others)}
        found = under_one_budget(groups, [one, *others], max if task.best == "max" else min)
        rest = [found[other] for other in others if other in found]
        if one not in found or not rest:
            return Finding(OPEN, "not run")
        mine, missing = found[one], [other for other in others if other not in found]
        how = _how(mine, rest, missing)
        said = f"{'; '.join(f'{runs[0].model} {spread(runs)}' for runs in (mine, *rest))} ({how})"
        ahead = [theirs for theirs in rest if by_more_than_spread(theirs, mine, task.test_best == "max")]
        if any(settles(mine) and settles(theirs) for theirs in ahead):
            return Finding(FAILS, said)
        if missing or ahead or not all(map(settles, (mine, *rest))):
            return Finding(OPEN, f"{said}: leans {'against' if ahead else 'for'} it")
        return Finding(HOLDS, said)

    return judge


def breaks(find: Callable[[], dict[str, float]]) -> Callable[[Path], Finding]:
    """Whether a bound is broken: by arithmetic, whatever the ledger holds."""

    def judge(_: Path) -> Finding:
        bars = find()
        worst = max(bars, key=lambda name: bars[name])
        over = bars[worst]
        return Finding(FAILS if over > 0 else HOLDS, f"steps more than the bound, at {worst}: {over:g}")

    return judge


def as_fast(case: str, ratio: str) -> Callable[[Path], Finding]:
    """What `make bench` measured on one thread, beside the ledger; it stays open: more threads may do otherwise."""

    def judge(results: Path) -> Finding:
        path = results.parent / "benchmarks" / "results" / "cpu.json"
        if not path.exists():
            return Finding(OPEN, "not measured")
        measured = json.loads(path.read_text())
        found = next(target["value"] for target in measured["cases"][case]["targets"] if target["text"] == ratio)
        return Finding(OPEN, f"{ratio}: {found:.1f} times the time where nothing runs beside ({measured['hardware']})")

    return judge


def within(recipe: str, row: str, bound: float | Callable[[], float], sense: str) -> Callable[[Path], Finding]:
    """Whether a row's test score stays at least (">=") or at most ("<=") a bound: the paper's, or one to be counted.

    Runs of the recipe's variant alone settle it: another's mean may be of other steps, or its data others.
    """

    def judge(results: Path) -> Finding:
        loaded, limit = load_recipe(recipe), bound if isinstance(bound, float) else bound()
        groups = [group for group in cells(loaded, results)[row] if counts(group[0], None)]
        if not groups:
            return Finding(OPEN, "not run")
        sign = 1 if task_by_name(loaded.task).best == "max" else -1

        def own(group: list[Result]) -> bool:
            return variant_of(group[0]) == loaded.default_variant

        # the recipe's variant first, then full runs, then most seeds, then what validation chooses
        runs = max(groups, key=lambda one: (own(one), is_full(one[0]), len(one), sign * mean_validation(one)))
        true = [run.test >= limit if sense == ">=" else run.test <= limit for run in runs]
        whose = row if own(runs) else f"{row} of the variant “{variant_of(runs[0])}”"
        said = f"{whose} {spread(runs, 3)}, the bound {limit:g} ({budget(runs[0])}, {seeds(runs)})"
        below = all(true) == (sense == "<=")
        if runs[0].budget is not None and below:
            return Finding(OPEN, f"{said}: more training may lead above it, or not")
        return of_each_seed(true, said, is_full(runs[0]) and own(runs))

    return judge


def of_each_seed(true: Sequence[bool], said: str, settled: bool) -> Finding:
    """What is said of one model alone, by whether each seed's run bears it out, if such runs can settle it at all."""
    if settled and len(true) >= SEEDS and all(true) == any(true):
        return Finding(HOLDS if all(true) else FAILS, said)
    return Finding(OPEN, f"{said}: leans {leaning(true)}")


def _compared(
    name: str,
    mine: list[Result],
    rest: dict[str, list[Result]],
    missing: Sequence[str],
    highest: bool,
    variant: str | None = None,
    margin: float = 0.0,
) -> Finding:
    """Whether the runs of one are better than those of each of the rest, by more than the margin."""
    settled = {other: runs for other, runs in rest.items() if settles(mine) and settles(runs)}
    won = [other for other, runs in settled.items() if by_more_than_spread(mine, runs, highest, margin=margin)]
    far = [other for other in won if by_more_than_spread(mine, rest[other], highest, times=2, margin=margin)]
    lost = [other for other, runs in settled.items() if by_more_than_spread(runs, mine, highest, margin=-margin)]
    leads = [lead(mine, other, highest) > margin for other in rest.values()]
    said = "; ".join(f"{one} {spread(runs)}" for one, runs in ({name: mine} | rest).items())
    how = _how(mine, list(rest.values()), missing, variant)
    if lost:
        where = f"not {margin:g} ahead of" if margin else "behind"
        far = [other for other in lost if by_more_than_spread(rest[other], mine, highest, times=2, margin=-margin)]
        return Finding(FAILS, f"{said} ({how}): {'' if far else 'narrowly '}{where} {', '.join(lost)}")
    if len(won) == len(rest) and not missing:
        near = ", ".join(other for other in won if other not in far)
        return Finding(HOLDS, f"{said} ({how})" + (f": narrowly ahead of {near}" if near else ""))
    level = ", ".join(other for other, runs in rest.items() if within_spread(mine, runs))
    close = f", within both spreads of {level}" if level else ""
    return Finding(OPEN, f"{said} ({how}): leans {leaning(leads)}{close}")


def _how(
    mine: Sequence[Result], rest: Sequence[Sequence[Result]], missing: Sequence[str], variant: str | None = None
) -> str:
    """Under what budget they were compared, by how many seeds, and who is missing."""
    how = ", ".join([*([mine[0].variant] if variant else []), budget(mine[0]), seeds(mine, *rest), rates(mine, *rest)])
    return how + (f"; not run: {', '.join(missing)}" if missing else "")
