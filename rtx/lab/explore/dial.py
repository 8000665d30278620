"""The locality dial: who wins, by the strengths of a local rule and of a long recall, from a stored sweep.

The task is `rtx.tasks.toy.locality_dial`; `studies/locality_dial.py` trained what is stored.
"""

from collections.abc import Mapping, Sequence
from statistics import mean

from rtx.lab import dial as sweep
from rtx.lab.dial import BATCH, EVERY, STORED, UPDATES, Cell, Run
from rtx.lab.explore.recording import Panel, Recording, Slide, Values


def dial(local: float = 1.0, long: float = 1.0) -> Recording:
    """Who wins where, with controls `local` and `long`, the strengths, and `updates`.

    Args:
        local, long: strengths of the rule and of the recall at first: 0, 0.5 or 1.

    Raises:
        ValueError: if a strength is not stored.
    """
    runs = sweep.stored()[1]
    names = list(dict.fromkeys(run.model for run in runs))
    tests = range(0, UPDATES + 1, EVERY)

    def see(local: float, long: float, updates: int) -> Values:
        found = sweep.by_model(runs, (local, long))
        curves = [[mean(run.excess()[at] for run in found[name]) for at in range(len(tests))] for name in names]
        lines = [list(zip(tests, curve, strict=True)) for curve in curves]
        at = updates // EVERY
        return _sentence(found, (local, long), at), {"curves": lines, "now": [[curve[at] for curve in curves]]}

    above = "nats above the best"
    return Recording(
        "Who learns a local rule, who a long recall?",
        "set one strength to 0, then the other: who wins where one of the two tools is enough? Then take fewer updates",
        {
            "local": Slide("local rules", STORED),
            "long": Slide("long recall", STORED),
            "updates": Slide("updates", tests, seconds=4),
        },
        {
            "curves": Panel(
                "lines", "mean of the seeds", f"updates of {BATCH} sequences", above, names, sets="updates", share=1.4
            ),
            "now": Panel("bars", "at these updates", up=above, places=names, fit=True),
        },
        see,
        name="dial",
        local=local,
        long=long,
        updates=UPDATES,
    )


def _sentence(found: Mapping[str, Sequence[Run]], cell: Cell, at: int) -> str:
    means = {name: mean(run.excess()[at] for run in runs) for name, runs in found.items()}
    ranked = "; ".join(f"{name} {means[name]:.3f}" for name in sorted(means, key=lambda name: means[name]))
    won, seeds = sweep.winner(found, at), len(next(iter(found.values())))
    told = "no model's worst seed is better than all others" if won is None else f"{won[0]} wins by {won[1]:.3f}"
    where = f"Local rules {cell[0]:g}, long recall {cell[1]:g}, after {at * EVERY} updates"
    return f"{where}: {told}. Nats above the best loss there is, mean of {seeds} seeds: {ranked}."
