"""How the ledger judges a claim, by its numbers and by nothing else.

They take full runs of at least three seeds. That one model is ahead of others holds if it is ahead of each, by more
than both spreads together, and fails if one of them is ahead of it by as much; that something is not needed holds
unless what has it is ahead by as much; what is said of one model alone holds if every seed bears it out. With less a
claim stays open, and the sentence says which way the runs that there are lean.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev

from rtx.lab.errata import Evidence
from rtx.tasks import task_by_name
from rtx.training.ledger import Result
from rtx.training.recipe import Recipe, load_recipe
from rtx.training.table import cells

SEEDS = 3  # at least, for a verdict
TRAINING = ("learning_rate", "epochs", "seconds")  # settings that leave a row its model and data
HOLDS, FAILS, OPEN = "holds", "fails", "open"


@dataclass(frozen=True)
class Finding:
    """What became of a claim: "holds", "fails" or "open", and the numbers that say so."""

    verdict: str
    sentence: str


def unchanged(run: Result) -> bool:
    """Whether it was the model and the data of its row: nothing was set but what `TRAINING` names."""
    return set(re.findall(r"\+(\w+)=", run.variant)) <= set(TRAINING)


def is_full(run: Result) -> bool:
    """Whether it was trained at the papers' size and to the end of its recipe."""
    return run.scale == "full" and run.budget is None


def better(
    recipe: str, one: str, others: Sequence[str], variant: str | None = None, detail: str | None = None
) -> Callable[[Path], Finding]:
    """Whether a row is better than each of the others, under one variant, scale and budget.

    The variant is the given one; without it, any but those that make the models equal in something ("same-…"). A
    detail of that name is compared, if given, instead of the test score.
    """

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        task = task_by_name(loaded.task)
        highest = task.test_best == "max"
        groups = {
            row: [
                _scored(runs, detail)
                for runs in _of_variant(loaded, row, of_row, variant)
                if _counts(runs[0], variant) and _has(runs, detail)
            ]
            for row, of_row in cells(loaded, results).items()
        }
        found = _under_one_budget(groups, [one, *others], max if task.best == "max" else min)
        rest = {other: found[other] for other in others if other in found}
        if one not in found or not rest:
            return Finding(OPEN, "not run")
        missing = [other for other in others if other not in found]
        return _compared(one, found[one], rest, missing, highest, variant)

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


def no_worse(recipe: str, one: str, other: str) -> Callable[[Path], Finding]:
    """Whether a row does without what another has: it holds unless that is ahead by more than both spreads together."""

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        task = task_by_name(loaded.task)
        groups = cells(loaded, results)
        found = _under_one_budget(groups, [one, other], max if task.best == "max" else min)
        if len(found) < 2:
            return Finding(OPEN, "not run")
        mine, theirs = found[one], found[other]
        how = f"{_budget(mine[0])}, {_seeds(mine, theirs)}"
        said = f"{one} {_spread(mine)}; {other} {_spread(theirs)} ({how})"
        behind = _by_more_than_spread(theirs, mine, task.test_best == "max")
        if not (_settles(mine) and _settles(theirs)):
            return Finding(OPEN, f"{said}: leans {'against' if behind else 'for'} it")
        return Finding(FAILS if behind else HOLDS, said)

    return judge


def breaks(find: Callable[[], Evidence]) -> Callable[[Path], Finding]:
    """Whether a bound is broken: by arithmetic, whatever the ledger holds."""

    def judge(_: Path) -> Finding:
        evidence = find()
        worst = max(evidence.bars, key=lambda name: evidence.bars[name])
        over = evidence.bars[worst]
        return Finding(FAILS if over > 0 else HOLDS, f"{evidence.unit}, at {worst}: {over:g}")

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
    """Whether a row's test score stays at least (">=") or at most ("<=") a bound: the paper's, or one to be counted."""

    def judge(results: Path) -> Finding:
        loaded, limit = load_recipe(recipe), bound if isinstance(bound, float) else bound()
        groups = [group for group in cells(loaded, results)[row] if _counts(group[0], None)]
        if not groups:
            return Finding(OPEN, "not run")
        sign = 1 if task_by_name(loaded.task).best == "max" else -1
        # full runs first, then most seeds, then what validation chooses
        runs = max(groups, key=lambda group: (is_full(group[0]), len(group), sign * _validation(group)))
        true = all(run.test >= limit if sense == ">=" else run.test <= limit for run in runs)
        said = f"{row} {_spread(runs, 3)}, the bound {limit:g} ({_budget(runs[0])}, {_seeds(runs)})"
        if not is_full(runs[0]) or len(runs) < SEEDS:
            return Finding(OPEN, f"{said}: leans {'for' if true else 'against'} it")
        return Finding(HOLDS if true else FAILS, said)

    return judge


def solves(recipe: str, row: str, variant: str | None = None) -> Callable[[Path], Finding]:
    """Whether a toy problem is solved within as many epochs as the paper says, by the recipe's variant or another.

    The paper's epochs are those of the best of several rates: it fails only by a rate that validation chose.
    """

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        wanted = variant or loaded.default_variant
        groups = [group for group in cells(loaded, results)[row] if _counts(group[0], wanted)]
        # of several rates the one with most seeds, and of these the one that validation was first content with
        runs = max(
            (group for group in groups if group[0].scale == "full"),
            key=lambda group: (len(group), _validation(group), -mean(run.epoch for run in group)),
            default=None,
        )
        if runs is None:
            return Finding(OPEN, "not run")
        solved = [run for run in runs if run.validation >= 0.9995]
        paper = loaded.paper_epochs(row)
        epochs = ", ".join(str(run.epoch) for run in solved) or "none"
        rates = max(len(run.chosen_from) for run in runs)
        how = f"{runs[0].variant}, {f'best of {rates}' if rates else 'no other rate tried'}"
        said = f"epoch {epochs} (paper: {paper}); test {mean(run.test for run in runs):.3f} solved ({how})"
        soon = len(solved) == len(runs) and all(run.epoch <= (paper or run.epoch) for run in solved)
        if len(runs) < SEEDS or not (soon or (is_full(runs[0]) and rates)):
            return Finding(OPEN, f"{said}; {_seeds(runs)}: leans {'for' if soon else 'against'} it")
        return Finding(HOLDS if soon else FAILS, said)

    return judge


def _compared(
    name: str,
    mine: list[Result],
    rest: dict[str, list[Result]],
    missing: Sequence[str],
    highest: bool,
    variant: str | None = None,
) -> Finding:
    """Whether the runs of one are better than those of each of the rest."""
    settled = {other: runs for other, runs in rest.items() if _settles(mine) and _settles(runs)}
    won = [other for other, runs in settled.items() if _by_more_than_spread(mine, runs, highest)]
    lost = [other for other, runs in settled.items() if _by_more_than_spread(runs, mine, highest)]
    leads = [(_mean(mine) > _mean(other)) == highest for other in rest.values()]
    said = "; ".join(f"{one} {_spread(runs)}" for one, runs in ({name: mine} | rest).items())
    how = ", ".join([*([mine[0].variant] if variant else []), _budget(mine[0]), _seeds(mine, *rest.values())])
    left = f"; not run: {', '.join(missing)}" if missing else ""
    if lost:
        return Finding(FAILS, f"{said} ({how}{left}): behind {', '.join(lost)}")
    if len(won) == len(rest) and not missing:
        return Finding(HOLDS, f"{said} ({how})")
    lean = "for it" if all(leads) else "against it" if not any(leads) else "both ways"
    return Finding(OPEN, f"{said} ({how}{left}): leans {lean}")


def _under_one_budget(
    found: dict[str, list[list[Result]]], rows: Sequence[str], best: Callable[..., list[Result]]
) -> dict[str, list[Result]]:
    """Of each row the runs under the variant, scale and budget that most of the rows share, full ones first.

    Where a row was run with several rates, those that validated `best`, `max` or `min`.
    """
    groups: dict[tuple[str, str, str], dict[str, list[Result]]] = {}
    for row in rows:
        for runs in found[row]:
            first = runs[0]
            shared = groups.setdefault((_variant(first), first.scale, first.budget or ""), {})
            shared[row] = best((runs, *([shared[row]] if row in shared else [])), key=_validation)
    return max(groups.values(), key=lambda one: (len(one), is_full(next(iter(one.values()))[0])), default={})


def _by_more_than_spread(mine: Sequence[Result], other: Sequence[Result], highest: bool) -> bool:
    gap = _mean(mine) - _mean(other) if highest else _mean(other) - _mean(mine)
    return gap > sum(stdev([run.test for run in runs]) if len(runs) > 1 else 0.0 for runs in (mine, other))


def _variant(run: Result) -> str:
    return run.variant.split("+")[0]  # without the settings that were changed, such as a rate


def _counts(run: Result, variant: str | None) -> bool:
    wanted = _variant(run) == variant if variant else not run.variant.startswith("same-")
    return wanted and unchanged(run)


def _settles(runs: Sequence[Result]) -> bool:
    return is_full(runs[0]) and len(runs) >= SEEDS


def _mean(runs: Sequence[Result]) -> float:
    return mean(run.test for run in runs)


def _validation(runs: Sequence[Result]) -> float:
    return mean(run.validation for run in runs)


def _of_variant(recipe: Recipe, row: str, groups: list[list[Result]], variant: str | None) -> list[list[Result]]:
    """A row's runs, where a variant leaves the row as it is by the name of that variant: they are its runs, too."""
    own = recipe.default_variant
    if variant is None or replace(recipe.plan(row, variant), variant=own) != recipe.plan(row):
        return groups

    def renamed(run: Result) -> Result:
        return replace(run, variant=run.variant.replace(own, variant, 1)) if _variant(run) == own else run

    return [[renamed(run) for run in runs] for runs in groups]


def _has(runs: Sequence[Result], detail: str | None) -> bool:
    return detail is None or all(detail in run.details for run in runs)


def _scored(runs: list[Result], detail: str | None) -> list[Result]:
    return runs if detail is None else [replace(run, test=run.details[detail]) for run in runs]


def _spread(runs: Sequence[Result], digits: int = 2) -> str:
    tests = [run.test for run in runs]
    middle = f"{mean(tests):.{digits}f}"
    return f"{middle} ± {stdev(tests):.{digits}f}" if len(tests) > 1 else middle


def _budget(run: Result) -> str:
    return "full budget" if is_full(run) else ", ".join(filter(None, (f"scale {run.scale}", run.budget)))


def _seeds(*groups: Sequence[Result]) -> str:
    fewest, most = min(map(len, groups)), max(map(len, groups))
    return f"{fewest} to {most} seeds" if fewest < most else f"{most} seed{'s' if most > 1 else ''}"
