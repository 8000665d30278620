"""The papers' claims, judged by the ledger and by nothing else.

A claim holds or fails if full runs of at least three seeds on both sides differ by more than their spread; with less
it stays open, and the sentence says which way the runs that there are lean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from rtx.tasks import task_by_name
from rtx.training.ledger import LEDGER, Result
from rtx.training.recipe import load_recipe
from rtx.training.table import cells

SEEDS = 3  # at least, for a verdict
HOLDS, FAILS, OPEN = "holds", "fails", "open"


@dataclass(frozen=True)
class Finding:
    """What became of a claim: "holds", "fails" or "open", and the numbers that say so."""

    verdict: str
    sentence: str


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, in our words, and how the ledger judges it."""

    text: str
    source: str
    judge: Callable[[Path], Finding]
    settled_by: str


def judged(results: str | Path = LEDGER) -> list[tuple[Claim, Finding]]:
    """Every claim with what the ledger in a folder says of it.

    Raises:
        ValueError: if a file of the ledger is damaged.
    """
    return [(claim, claim.judge(Path(results))) for claim in CLAIMS]


def better(recipe: str, one: str, others: Sequence[str]) -> Callable[[Path], Finding]:
    """Whether a row is better than each of the others, under one variant, scale and budget."""

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        highest = task_by_name(loaded.task).test_best == "max"
        found = _under_one_budget(cells(loaded, results), [one, *others])
        if one not in found or len(found) < 2:
            return Finding(OPEN, "not run")
        mine, rest = found[one], [found[other] for other in others if other in found]
        wins = [_by_more_than_spread(mine, other, highest) for other in rest]
        leads = [(_mean(mine) > _mean(other)) == highest for other in rest]
        said = "; ".join(f"{runs[0].model} {_spread(runs)}" for runs in (mine, *rest))
        how = f"{_budget(mine[0])}, {_seeds(mine, *rest)}"
        missing = [other for other in others if other not in found]
        left = f"; not run: {', '.join(missing)}" if missing else ""
        enough = not missing and _full(mine[0]) and min(map(len, (mine, *rest))) >= SEEDS
        if enough and (all(wins) or not any(leads)):
            return Finding(HOLDS if all(wins) else FAILS, f"{said} ({how})")
        lean = "for it" if all(leads) else "against it" if not any(leads) else "both ways"
        return Finding(OPEN, f"{said} ({how}{left}): leans {lean}")

    return judge


def solves(recipe: str, row: str) -> Callable[[Path], Finding]:
    """Whether a toy problem is solved within as many epochs as the paper says."""

    def judge(results: Path) -> Finding:
        loaded = load_recipe(recipe)
        runs = [run for group in cells(loaded, results)[row] for run in group if run.scale == "full"]
        if not runs:
            return Finding(OPEN, "not run")
        solved = [run for run in runs if run.validation >= 0.9995]
        paper = loaded.paper_epochs(row)
        epochs = ", ".join(str(run.epoch) for run in solved) or "none"
        said = f"epoch {epochs} (paper: {paper}); test {mean(run.test for run in runs):.3f} solved"
        soon = len(solved) == len(runs) and all(run.epoch <= (paper or run.epoch) for run in solved)
        if len(runs) < SEEDS:
            return Finding(OPEN, f"{said}; {_seeds(runs)}: leans {'for' if soon else 'against'} it")
        return Finding(HOLDS if soon else FAILS, said)

    return judge


def _under_one_budget(found: dict[str, list[list[Result]]], rows: Sequence[str]) -> dict[str, list[Result]]:
    """Of each row the runs under the variant, scale and budget that most of the rows share, full ones first."""
    groups: dict[tuple[str, str, str], dict[str, list[Result]]] = {}
    for row in rows:
        for runs in found[row]:
            first = runs[0]
            key = (first.variant.split("+")[0], first.scale, first.budget or "")
            groups.setdefault(key, {}).setdefault(row, []).extend(runs)
    return max(groups.values(), key=lambda one: (len(one), _full(next(iter(one.values()))[0])), default={})


def _by_more_than_spread(mine: Sequence[Result], other: Sequence[Result], highest: bool) -> bool:
    gap = _mean(mine) - _mean(other) if highest else _mean(other) - _mean(mine)
    return gap > sum(stdev([run.test for run in runs]) if len(runs) > 1 else 0.0 for runs in (mine, other))


def _full(run: Result) -> bool:
    return run.scale == "full" and run.budget is None


def _mean(runs: Sequence[Result]) -> float:
    return mean(run.test for run in runs)


def _spread(runs: Sequence[Result]) -> str:
    tests = [run.test for run in runs]
    return f"{mean(tests):.2f} ± {stdev(tests):.2f}" if len(tests) > 1 else f"{tests[0]:.2f}"


def _budget(run: Result) -> str:
    return "full budget" if _full(run) else ", ".join(filter(None, (f"scale {run.scale}", run.budget)))


def _seeds(*groups: Sequence[Result]) -> str:
    fewest = min(map(len, groups))
    return f"{fewest} seed{'s' if fewest > 1 else ''}"


OTHERS = ("transformer", "tcn", "rnn", "gru", "lstm")
CLAIMS = (
    Claim(
        "R-Transformer is ahead of all others on polyphonic music, by a large margin.",
        "R-Transformer, Table 2",
        better("nottingham", "r-transformer", OTHERS),
        "three seeds of each row, and the rows at equal parameters (variant same-parameters)",
    ),
    Claim(
        "R-Transformer is ahead of all others on digits read pixel by pixel.",
        "R-Transformer, Table 1",
        better("mnist", "r-transformer", OTHERS),
        "the full runs of Table 1: hours on a GPU each",
    ),
    Claim(
        "On words, R-Transformer is far ahead of the Transformer.",
        "R-Transformer, Table 4",
        better("ptb-word", "r-transformer", ("transformer",)),
        "both rows to the end of the recipe, over the three rates",
    ),
    Claim(
        "On words, an LSTM is ahead of R-Transformer.",
        "R-Transformer, Table 4",
        better("ptb-word", "lstm", ("r-transformer",)),
        "both rows to the end: early on, R-Transformer learns faster",
    ),
    Claim(
        "Three channels translate better than one.",
        "MC-RNN, Table 2",
        better("multi30k", "mc-rnn-3", ("baseline",)),
        "the full size, three seeds, and the size controls of Table 5",
    ),
    Claim(
        "Attention adds two numbers out of 100 steps within one epoch.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-100"),
        "more seeds; new sequences for each epoch, as the paper has them",
    ),
    Claim(
        "Attention multiplies two numbers out of 100 steps within two epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "attention-100"),
        "more seeds",
    ),
    Claim(
        "Attention multiplies two numbers out of 1,000 steps within two epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-multiply", "attention-1000"),
        "the grid of rates, and more seeds",
    ),
    Claim(
        "Attention adds two numbers out of 10,000 steps within three epochs.",
        "Feed-forward attention, Table 1",
        solves("ffa-add", "attention-10000"),
        "one run: about a minute an epoch on one core",
    ),
)
