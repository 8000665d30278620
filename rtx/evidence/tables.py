"""A recipe's table: the paper's number beside ours. All of our numbers come from the ledger."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from rtx.checks import check_choice
from rtx.evidence.ledger import LEDGER, Result, option, read_results, variant_of
from rtx.training.recipe import Recipe


class Row(NamedTuple):
    """The cells of one line, as text."""

    model: str
    paper: str
    ours: str
    variant: str = ""
    seeds: str = ""
    epoch: str = ""
    validation: str = ""
    budget: str = ""
    parameters: str = ""
    hardware: str = ""


HEADER = Row._fields
SHORT = ("model", "paper", "ours", "variant", "seeds", "budget", "parameters")
OURS = SHORT.index("ours")
DIRECTION = {"min": "lower is better", "max": "higher is better"}


def cells(recipe: Recipe, ledger: Path = LEDGER, variant: str | None = None) -> dict[str, list[list[Result]]]:
    """Return the runs of each row in groups; the runs of a group differ only in their seeds and are sorted by seed.

    A group shares variant, scale, budget, metric, data, size and precision. Where seconds are the budget, it
    shares the hardware, too. If a seed was run twice, the newest run counts. With `variant`, the runs of others are
    left out. Where training ends as soon as a problem is solved, see `_with_solved`.
    """
    if variant is not None:
        check_choice("variant", variant, recipe.variants)
    groups: dict[tuple[Any, ...], dict[int, Result]] = defaultdict(dict)
    for run in read_results(recipe.name, ledger):  # the newest run of a seed is the last
        if variant in (None, variant_of(run)):
            precision = option(run.command, "--precision")
            how = (run.model, run.scale, run.variant, run.budget, machine(run), *precision)
            groups[*how, run.metric, run.data_sha256, run.parameters][run.seed] = run
    _with_solved(groups, {name: of.get("stop_at", math.inf) for name, of in recipe.variants.items()})
    found = [(key[0], [of[seed] for seed in sorted(of)]) for key, of in sorted(groups.items(), key=str)]
    return {model: [runs for of, runs in found if of == model] for model in recipe.models}


def _with_solved(groups: dict[tuple[Any, ...], dict[int, Result]], enough: dict[str, float]) -> None:
    """Put a run that ended because it had solved its problem beside the cut runs of other seeds.

    The cut would not have changed it. On its own it would be a complete run, and a table that prefers complete runs
    would show only the seeds that succeeded. The fourth part of a group's key is its budget.
    """
    for (model, scale, variant, budget, *how), cut in groups.items():
        complete = groups.get((model, scale, variant, None, *how), {})
        if cut_at(budget) and set(cut) - set(complete):
            for seed, run in list(complete.items()):
                if seed not in cut and run.epoch <= cut_at(budget) and run.validation >= enough[variant_of(run)]:
                    cut[seed] = replace(complete.pop(seed), budget=budget)
    for key in [key for key, runs in groups.items() if not runs]:
        del groups[key]


def cut_at(budget: str | None) -> int:
    """Return the number of epochs of a budget such as "3 of 20 epochs"; 0 for another one, and for all training."""
    cut = re.fullmatch(r"(\d+) of \d+ epochs", budget or "")
    return int(cut[1]) if cut else 0


def machine(result: Result) -> str | None:
    """Return the hardware if seconds are the budget, because other hardware gets more done; otherwise None."""
    return result.hardware if "seconds" in result.variant else None


def rows(recipe: Recipe, ledger: Path = LEDGER, variant: str | None = None) -> list[Row]:
    """Return a line for each group of `cells`, averaged over seeds; "not run" if the ledger has no run of a row."""
    found = [(model, runs) for model, groups in cells(recipe, ledger, variant).items() for runs in groups or [[]]]
    score = next((_score(runs[0]) for _, runs in found if runs), "")
    return [_line(recipe, model, runs, score) for model, runs in found]


class Overview(NamedTuple):
    """One line for each model: name, paper's number, our number, and how it was trained.

    `best` has the places of the lines with the best test score on their data, of those with the scale and the budget
    of the first line that has runs. A line that is alone with its data is not marked. `score` says what the test score
    is, and whether lower or higher is better.
    """

    lines: list[Row]
    best: set[int]
    score: str

    def to_markdown(self) -> str:
        """Return the table as Markdown, with the best score in bold."""
        shown = [[getattr(line, name) for name in SHORT] for line in self.lines]
        for place in self.best:
            shown[place][OURS] = f"**{shown[place][OURS]}**"
        return to_markdown(shown, [*SHORT[:OURS], f"ours: {self.score}", *SHORT[OURS + 1 :]])


def overview(recipe: Recipe, ledger: Path = LEDGER, variant: str | None = None) -> Overview:
    """Return one line for each model, for the runs that come closest to the paper's training.

    These are full-size runs before smaller ones. Then come runs with the recipe's own settings, of which only the
    learning rate may differ, then complete runs, then those with most seeds, then those with the best validation
    score. The test score does not decide.
    """
    per_model = cells(recipe, ledger, variant)
    from rtx.tasks import task_by_name  # takes seconds to import

    task = task_by_name(recipe.task)
    sign = 1 if task.best == "max" else -1

    def order(runs: list[Result]) -> tuple[bool, bool, bool, int, float]:
        first, validation = runs[0], sign * mean(run.validation for run in runs)
        variant, *changed = first.variant.split("+")
        own = variant == recipe.default_variant and all(one.startswith("learning_rate=") for one in changed)
        return first.scale == "full", own, first.budget is None, len(runs), validation

    found = {model: max(groups, key=order, default=[]) for model, groups in per_model.items()}
    first = next((runs[0] for runs in found.values() if runs), None)
    metric = _score(first) if first else task.metric
    lines = [_line(recipe, model, runs, metric) for model, runs in found.items()]
    scores: dict[str, dict[int, float]] = defaultdict(dict)  # rows with other data are not compared
    for place, (model, runs) in enumerate(found.items()):
        if runs and first and (runs[0].scale, runs[0].budget) == (first.scale, first.budget):
            data = f"{runs[0].data} {recipe.models[model].get('task_arguments')} {runs[0].data_sha256}"
            scores[data][place] = round(mean(run.test for run in runs), 3)
    top = max if task.test_best == "max" else min
    best = {place for of in scores.values() if len(of) > 1 for place in of if of[place] == top(of.values())}
    direction = DIRECTION[task.test_best if first else task.best]
    return Overview(lines, best, f"{metric}, {direction}")


def printable(text: str) -> str:
    """Return a text as one line, with escapes for control characters such as those that change a terminal's colours."""
    line = " ".join(text.splitlines())
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line)


def printed(recipe: Recipe, model: str) -> str:
    """Return the paper's number with all its digits, at least two decimals; "-" if it has no number."""
    paper = recipe.paper(model)
    return "-" if paper is None else max(f"{paper:.2f}", str(paper), key=len)


def chosen(groups: Sequence[list[Result]], best: Callable[..., list[Result]]) -> list[Result]:
    """Return, of groups with different learning rates, the one with the best validation score; `best` is max or min.

    Two groups are compared on the seeds that both have: otherwise a rate with one lucky seed could win.
    """

    def of_two(one: list[Result], other: list[Result]) -> list[Result]:
        both = {run.seed for run in one} & {run.seed for run in other}
        return best((one, other), key=lambda runs: mean(r.validation for r in runs if r.seed in both or not both))

    return reduce(of_two, groups)


def _score(run: Result) -> str:
    """Return what `test` is."""
    return next(iter(run.details), run.metric)


def _line(recipe: Recipe, model: str, runs: Sequence[Result], score: str) -> Row:
    """Return a line. It names what differs from the table: another score, or other data than the paper's."""
    paper = printed(recipe, model)
    if not runs:
        return Row(model, paper, "not run")
    line, first = row(paper, runs), runs[0]
    if _score(first) != score:
        line = line._replace(ours=f"{line.ours} {_score(first)}")
    if first.data != recipe.models[model].get("task", recipe.task):
        line = line._replace(variant=f"{line.variant}, {first.data}")
    return line


def row(paper: str, runs: Sequence[Result]) -> Row:
    """Return the line of a group of runs that differ only in their seeds."""
    first, tried = runs[0], max(len(run.chosen_from) for run in runs)
    return Row(
        model=first.model,
        paper=paper,
        ours=spread([r.test for r in runs], 3),
        variant=first.variant if first.scale == "full" else f"{first.variant}, {first.scale}",
        seeds=", ".join(str(r.seed) for r in runs),
        epoch=", ".join(str(r.epoch) for r in runs),
        validation=spread([r.validation for r in runs], 3) + (f", best of {tried}" if tried else ""),
        budget=f"{first.budget or 'full'}, {duration(mean(r.seconds for r in runs))}",
        parameters=f"{first.parameters:,}",
        hardware="; ".join(dict.fromkeys(_processor(r.hardware) for r in runs)),
    )


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def spread(values: Sequence[float], digits: int) -> str:
    """Return mean ± standard deviation, which is NaN if a value is not finite; of one value only this value."""
    middle = f"{mean(values):.{digits}f}"
    if len(values) < 2:
        return middle
    deviation = stdev(values) if all(map(math.isfinite, values)) else math.nan
    return f"{middle} ± {deviation:.{digits}f}"


def to_markdown(table: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *table]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines)


def _processor(hardware: str) -> str:
    """Return the name of the hardware without what every processor of its maker has in its name."""
    return hardware.replace("(R)", "").replace(" Processor", "")
