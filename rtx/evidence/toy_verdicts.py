"""How the ledger judges claims of how soon a toy problem is solved: by epochs, as the papers count."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean

from rtx.evidence.comparable import (
    SEEDS,
    before,
    compared,
    counts,
    cuts,
    had_epochs,
    is_solved,
    of_chosen_rates,
    of_each_rate,
    seeds,
)
from rtx.evidence.ledger import Result
from rtx.evidence.tables import cells
from rtx.evidence.verdicts import HOLDS, OPEN, Finding, of_each_seed
from rtx.training.recipe import Recipe, load_recipe

UNTOLD = "more training may tell"


def solves(recipe: str, row: str, variant: str | None = None) -> Callable[[Path], Finding]:
    """Whether a toy problem is solved within as many epochs as the paper says, by the recipe's variant or another.

    The paper's epochs are those of the best of several rates: it fails only by the best for each seed, trained for no
    fewer epochs than the paper's. By any one rate it may hold, for the best takes no longer. What was cut
    before, and not solved, leans no way.
    """

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        paper = loaded.paper_epochs(row)
        return _most_telling(_in_time(runs, paper) for runs in _toy_runs(loaded, results, row, variant))

    return judge


def sooner(recipe: str, one: str, other: str, variant: str | None = None) -> Callable[[Path], Finding]:
    """Whether a row solves a toy problem in fewer epochs than another, by the best rate of each.

    It holds if each run of the one, by any one rate, is before each of the other, whatever their seeds, and fails if
    none is; who is behind must have compared rates, for another may be sooner.
    """

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        mine, theirs = (_toy_runs(loaded, results, row, variant) for row in (one, other))
        return _most_telling(_ahead(runs, theirs[0]) for runs in mine if theirs)

    return judge


def _in_time(runs: list[Result], paper: int | None) -> Finding:
    """Whether runs, one for each seed, solved their problem within the paper's epochs."""
    solved = [run for run in runs if is_solved(run)]
    epochs = ", ".join(str(run.epoch) for run in solved) or "none"
    variants = ", ".join(dict.fromkeys(run.variant for run in runs))
    test = f"test {mean(run.test for run in runs):.3f} solved"
    said = f"epoch {epochs} (paper: {paper}); {test} ({variants}, {compared(runs)}; {seeds(runs)}{cuts(runs)})"
    told = [run for run in runs if run in solved or had_epochs(run, paper)]
    if not told:
        return Finding(OPEN, f"{said}: {UNTOLD}")
    soon = [run in solved and run.epoch <= (paper or run.epoch) for run in told]
    return of_each_seed(soon, said, told == runs and (all(soon) or all(run.chosen_from for run in runs)))


def _ahead(mine: list[Result], theirs: list[Result]) -> Finding:
    """Whether each run of the one solved its problem before each of the other."""
    said = "; ".join(f"{runs[0].model} epoch {_epochs(runs)}" for runs in (mine, theirs))
    said += f" ({seeds(mine, theirs)}{cuts([*mine, *theirs])})"
    pairs = [before(one, other) for one, other in product(mine, theirs)]
    told = [pair for pair in pairs if pair is not None]
    if not told:
        return Finding(OPEN, f"{said}: {UNTOLD}")
    behind = theirs if all(told) else mine
    enough = min(len(mine), len(theirs)) >= SEEDS and all(run.chosen_from for run in behind)
    return of_each_seed(told, said, enough and told == pairs)


def _most_telling(findings: Iterable[Finding]) -> Finding:
    """Of what is found by the chosen rates, and then by each rate alone, what holds, or else the first that leans."""
    found = list(findings) or [Finding(OPEN, "not run")]
    return max(found, key=lambda one: (one.verdict == HOLDS, not one.sentence.endswith(UNTOLD)))


def _toy_runs(recipe: Recipe, results: Path, row: str, variant: str | None) -> list[list[Result]]:
    """A row's runs at full scale, by the recipe's variant or another, one for each seed.

    By the chosen rates first, then by each rate alone; nothing, if it was not run.
    """
    full = [group for group in cells(recipe, results)[row] if group[0].scale == "full"]
    groups = [group for group in full if counts(group[0], variant or recipe.default_variant)]
    if not groups:
        return []
    chosen, by_rate = of_chosen_rates(groups), of_each_rate(groups)
    return [chosen if all(run.chosen_from for run in chosen) else of_chosen_rates(by_rate), *by_rate]


def _epochs(runs: Sequence[Result]) -> str:
    """The epochs in which each run solved its problem, in words."""
    return ", ".join(str(run.epoch) if is_solved(run) else "none" for run in runs)
