"""What a claim asks of the ledger: one function for each kind of question. `verdict` judges the answers."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean

from rtx.evidence import selection
from rtx.evidence.counted import beyond_path_bound, order_blind
from rtx.evidence.ledger import Result
from rtx.evidence.tables import cells, cut_at, spread
from rtx.evidence.verdict import SEEDS, Comparison, Count, Look, Pair
from rtx.tasks import task_by_name
from rtx.training.recipe import Recipe, load_recipe

NOT_RUN = Look("not run")


def ahead(
    results: Path,
    recipe: str,
    model: str,
    others: Sequence[str],
    variant: str | None = None,
    detail: str | None = None,
    own: Mapping[str, str] | None = None,
    margin: float = 0.0,
) -> Look:
    """Is a model ahead of each of the others, under one variant, scale and budget?

    Args:
        variant: the variant to compare; without it, any that does not make the models equal in something.
        detail: the detail to compare instead of the test score.
        own: the variant of a row, if it is not the recipe's.
        margin: how far ahead the model must be.
    """
    loaded = load_recipe(recipe)
    task, own = task_by_name(loaded.task), own or {}
    groups = {}
    for row, runs in cells(loaded, results).items():
        of = selection.of_variant(loaded, row, runs, variant)
        named = selection.renamed(of, own.get(row, ""), loaded.default_variant)
        groups[row] = selection.with_detail([group for group in named if selection.counts(group[0], variant)], detail)
    found = selection.under_one_budget(groups, [model, *others], max if task.best == "max" else min)
    rest = {other: found.get(other, []) for other in others}
    return _compared(found.get(model, []), rest, task.test_best == "max", margin, variant)


def needs(results: Path, recipe: str, model: str, changes: Sequence[str], variant: str | None = None) -> Look:
    """Is a model ahead of the same model with each of these settings, such as "heads=0"? By default in the own variant.

    In the variant `strong`, each has the learning rate, norm, positions and dropout that validation prefers.
    """
    loaded = load_recipe(recipe)
    task, groups = task_by_name(loaded.task), defaultdict[str, list[list[Result]]](list)
    for runs in cells(loaded, results)[model]:
        if selection.is_full(runs[0]):
            groups[selection.without_tuned(runs[0])].append(runs)
    found = {name: selection.of_best_rate(each, max if task.best == "max" else min) for name, each in groups.items()}
    own = variant or loaded.default_variant
    rest = {change: found.get(f"{own}+{change}", []) for change in changes}
    return _compared(found.get(own, []), rest, task.test_best == "max", variant=variant)


def not_needed(results: Path, recipe: str, model: str, others: Sequence[str]) -> Look:
    """The others have one part more than the model. Is none of them ahead of it?"""
    look = ahead(results, recipe, model, others)
    if not isinstance(look.evidence, Comparison):
        return look
    return Look(look.sentence, Comparison((), look.evidence.behind, look.evidence.leads))


def bound(results: Path, recipe: str, model: str, bound: float | str, sense: str) -> Look:
    """Is the test score of every seed at least (">=") or at most ("<=") a bound: a number, or "order blind"?

    The runs are those of the recipe's own variant. Full runs come first, then most seeds, then the best validation. For
    runs that were cut short, larger scores must be better.
    """
    loaded, limit = load_recipe(recipe), order_blind() if isinstance(bound, str) else bound
    sign = 1 if task_by_name(loaded.task).best == "max" else -1
    groups = [group for group in cells(loaded, results)[model] if selection.counts(group[0], loaded.default_variant)]
    if not groups:
        return NOT_RUN
    runs = max(groups, key=lambda one: (selection.is_full(one[0]), len(one), sign * selection.mean_validation(one)))
    # scores are stored as 32-bit numbers, so one that is exactly the bound can lie a little beside it
    above, slack = 1 if sense == ">=" else -1, 1e-6 * abs(limit)
    true = [above * (run.test - limit) >= -slack for run in runs]
    how = f"{selection.budget(runs[0])}, {selection.seeds(runs)}"
    said = f"{model} {spread([run.test for run in runs], 3)}, bound {limit:g} ({how})"
    undecided = all(true) if sense == "<=" else not all(true)  # more training may raise the score
    if runs[0].budget is not None and undecided:
        return Look(f"{said}: the training was cut short", Count((), False))
    return Look(said, Count(true, runs[0].scale == "full"))  # if cut, it is past the bound already


def solves(results: Path, recipe: str, model: str, variant: str | None = None) -> Look:
    """Does a model solve a toy problem within the paper's number of epochs?

    The paper gives the best of several rates. The claim holds if one rate is enough, because the best rate needs no
    more epochs. It fails only if even the best rate of each seed needs more epochs than the paper's.
    """
    loaded = load_recipe(recipe)
    best, by_rate = _toy_runs(loaded, results, model, variant)
    found = [_in_time(runs, loaded.models[model]["paper_epochs"]) for runs in [best, *by_rate] if runs]
    if not found:
        return NOT_RUN
    sentence, count = max(found, key=lambda one: (one[1].verdict == "holds", len(one[1].confirmed) > 0))
    return Look(sentence, count)


def sooner(results: Path, recipe: str, model: str, others: Sequence[str], variant: str | None = None) -> Look:
    """Does a model solve a toy problem in fewer epochs than another, each with its best rate?

    A run that was cut before it solved the problem could have solved it in the next epoch, or never. Each of the two
    tests, for ahead and for behind, assumes what makes its own conclusion harder.
    """
    loaded = load_recipe(recipe)
    (other,) = others
    mine, theirs = (_toy_runs(loaded, results, row, variant)[0] for row in (model, other))
    if not (mine and theirs):
        return NOT_RUN
    if_ahead = Pair([_earliness(run, False) for run in mine], [_earliness(run, True) for run in theirs])
    if_behind = Pair([_earliness(run, True) for run in mine], [_earliness(run, False) for run in theirs])
    leads = [True for one, another in product(*if_ahead) if one > another]
    leads += [False for one, another in product(*if_behind) if one <= another]
    # a model that did not compare its rates may be sooner with another one: it cannot be shown to be behind
    show_ahead, show_behind = (all(run.chosen_from for run in runs) for runs in (theirs, mine))
    said = "; ".join(f"{runs[0].model} epoch {_epochs(runs)}" for runs in (mine, theirs))
    said += f" ({selection.seeds(mine, theirs)}{_cuts([*mine, *theirs])})"
    said += "" if show_ahead or show_behind else ": one rate was tried"
    return Look(said, Comparison([if_ahead] if show_ahead else (), [if_behind] if show_behind else (), leads))


def counted(_: Path, path: str) -> Look:
    """Is a path of MC-RNN never longer than its bound? Arithmetic settles this, whatever the ledger holds."""
    beyond = beyond_path_bound(max if path == "longest" else min)
    worst = max(beyond, key=lambda name: beyond[name])
    true = beyond[worst] <= 0
    return Look(f"steps more than the bound, at {worst}: {beyond[worst]:g}", Count([true] * SEEDS, True))


def timed(results: Path, case: str, ratio: str) -> Look:
    """What did `make bench` measure? A time on one thread of a CPU does not settle a claim about parallel hardware."""
    path = results.parent / "benchmarks" / "results" / "cpu.json"
    if not path.exists():
        return Look("not measured")
    measured = json.loads(path.read_text(encoding="utf-8"))
    found = next(target["value"] for target in measured["cases"][case]["targets"] if target["text"] == ratio)
    return Look(f"{ratio}: {found:.1f} times the time on one thread ({measured['hardware']})", Count((), False))


QUESTIONS: dict[str, Callable[..., Look]] = {
    question.__name__: question for question in (ahead, needs, not_needed, bound, solves, sooner, counted, timed)
}


def _compared(
    mine: list[Result], rest: dict[str, list[Result]], highest: bool, margin: float = 0.0, variant: str | None = None
) -> Look:
    """Compare runs with those of each other row. Only full runs can settle the claim."""
    run = {other: runs for other, runs in rest.items() if runs}
    if not (mine and run):
        return NOT_RUN
    own = [score - margin for score in selection.scores(mine, highest)]
    full = [runs for runs in run.values() if selection.is_full(mine[0]) and selection.is_full(runs[0])]
    pairs = [Pair(own, selection.scores(runs, highest)) for runs in full]
    leads = [mean(own) > mean(selection.scores(runs, highest)) for runs in run.values()]
    named = {mine[0].model: mine} | run
    said = "; ".join(f"{name} {spread([one.test for one in runs], 2)}" for name, runs in named.items())
    how = [*([mine[0].variant] if variant else []), selection.budget(mine[0]), selection.seeds(mine, *run.values())]
    how += [selection.rates(mine, *run.values())]
    missing = [other for other in rest if other not in run]
    if missing and all(leads):  # a lead over some of the models suggests nothing about all of them
        leads = []
    how += [f"not run: {', '.join(missing)}"] if missing else []
    why = "" if pairs else ": only full runs are tested"
    return Look(f"{said} ({', '.join(how)}){why}", Comparison(pairs if len(pairs) == len(rest) else (), pairs, leads))


def _toy_runs(recipe: Recipe, results: Path, row: str, variant: str | None) -> tuple[list[Result], list[list[Result]]]:
    """Return a row's runs at full scale: one for each seed, and all by their rate.

    The one has the rate that a sweep chose, if at least three seeds have such a run. Otherwise it has the rate with
    most seeds; of several such rates the one with the best validation, then the quickest.
    """
    wanted = variant or recipe.default_variant
    groups = cells(recipe, results)[row]
    full = [group for group in groups if group[0].scale == "full" and selection.counts(group[0], wanted)]
    by_rate = selection.of_each_rate(full)
    longest = {(run.variant, run.seed): run for runs in by_rate for run in runs}
    chosen = [run for group in full for run in group if run.chosen_from]
    swept = {run.seed: replace(longest[run.variant, run.seed], chosen_from=run.chosen_from) for run in chosen}
    if len(swept) >= SEEDS:
        return [swept[seed] for seed in sorted(swept)], by_rate

    def order(runs: list[Result]) -> tuple[int, float, float]:
        return len(runs), selection.mean_validation(runs), -mean(run.epoch for run in runs)

    return max(by_rate, key=order, default=[]), by_rate


def _in_time(runs: list[Result], paper: int) -> tuple[str, Count]:
    solved = [run for run in runs if selection.is_solved(run)]
    variants = ", ".join(dict.fromkeys(run.variant for run in runs))
    how = f"{variants}, {selection.seeds(runs)}{_cuts(runs)}"
    said = f"solved after epoch {_epochs(runs)}, in the paper {paper} ({how})"
    settled = [run for run in runs if run in solved or selection.is_full(run) or cut_at(run.budget) >= paper]
    soon = [run in solved and run.epoch <= paper for run in settled]
    late_with_one_rate = not all(soon) and not all(run.chosen_from for run in runs)
    if settled != runs:
        said += ": the training was cut short"
    elif late_with_one_rate:
        said += ": one rate was tried"
    return said, Count(soon, settled == runs and not late_with_one_rate)


def _earliness(run: Result, cut_solves: bool) -> float:
    """Return minus the epoch in which a run solves its problem; a cut run solves it in its next epoch, or never."""
    if selection.is_solved(run):
        return -run.epoch
    return -cut_at(run.budget) - 1 if cut_solves and not selection.is_full(run) else -math.inf


def _epochs(runs: Sequence[Result]) -> str:
    def one(run: Result) -> str:
        return str(run.epoch) if selection.is_solved(run) else f">{cut_at(run.budget):g}" if run.budget else "never"

    return ", ".join(map(one, runs))


def _cuts(runs: Sequence[Result]) -> str:
    """Return, in words, what cut runs short."""
    cuts = dict.fromkeys(run.budget for run in runs if run.budget)
    return "".join(f", cut at {cut}" for cut in cuts)
