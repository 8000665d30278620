"""Checks of notebook 15: choosing a run, a permutation test, and Holm's correction."""

import math
from collections.abc import Callable
from itertools import combinations
from operator import ge, gt, le
from statistics import mean

from rtx.lab.exercises.exercise import Exercise

Runs = tuple[list[float], list[float]]


def _runs() -> list[Runs]:
    """New lists each time: an answer that sorts them must not change what it is compared with."""
    return [
        ([3.2, 2.9, 3.0], [3.1, 3.3, 2.8]),
        ([0.5, 0.4, 0.9, 0.3], [0.2, 0.9, 0.1, 0.6]),
        ([0.6, 0.7, 0.9], [0.3, 0.5, 0.4]),
        ([1.0], [2.0]),
    ]


def _chosen(validation: list[float], test: list[float]) -> float:
    """The test score of the run that validated best, where less is better."""
    return test[validation.index(min(validation))]


reported = Exercise(
    cases=_runs,
    solution=_chosen,
    bugs={
        "this is the smallest test loss. The test data must not choose: let `validation` choose": lambda v, t: min(t),
        "this is a validation loss. It chose the run, so it is too good. Return the test loss": lambda v, t: min(v),
        "this is the mean of all test losses. Choose one run": lambda v, t: mean(t),
        "this run has the largest validation loss. Less is better here": lambda v, t: t[v.index(max(v))],
        "this is the place of the run in the list. Return its test loss": lambda v, t: v.index(min(v)),
    },
    praise="validation chooses, and the test loss of the chosen run is reported",
)


def _scores() -> list[Runs]:
    """Unequal numbers of scores, equal scores, and both orders of the means."""
    return [
        ([3.0, 4.0, 5.0], [1.0, 2.0, 2.5]),
        ([1.0, 5.0, 2.0], [3.0, 4.0, 0.5, 2.5]),
        ([2.0, 2.0], [2.0, 1.0, 3.0]),
        ([1.0, 2.0, 3.0, 4.0], [0.0, 5.0]),
    ]


def permuted(a: list[float], b: list[float], as_good: Callable[[float, float], bool] = ge, size: int = 0) -> float:
    """The share of deals of all scores whose first group has at least the sum of the real one."""
    deals = [sum(deal) for deal in combinations([*a, *b], size or len(a))]
    return sum(as_good(deal, sum(a)) for deal in deals) / len(deals)


def _as_far(a: list[float], b: list[float]) -> float:
    """The share of deals whose means are at least as far apart, in either direction."""
    total, real = sum(a) + sum(b), abs(mean(a) - mean(b))
    deals = [sum(deal) for deal in combinations([*a, *b], len(a))]
    return mean(abs(deal / len(a) - (total - deal) / len(b)) >= real for deal in deals)


permutation_p = Exercise(
    cases=_scores,
    solution=permuted,
    bugs={
        "count deals that are exactly as good, too, as the real one is. Use >=": lambda a, b: permuted(a, b, gt),
        "these deals are at most as good. Count those that are at least as good": lambda a, b: permuted(a, b, le),
        "this counts both directions. Count the deals in which the first group is at least as good": _as_far,
        "this is a number of deals. Divide by the number of all deals": lambda a, b: (
            permuted(a, b) * sum(1 for _ in combinations([*a, *b], len(a)))
        ),
        "each deal must give the first model len(a) scores": lambda a, b: permuted(a, b, size=len(b)),
    },
    praise="the smaller the share, the harder it is to explain the lead by chance",
)


def _several() -> list[tuple[list[float]]]:
    """Not in order; one case needs the running maximum, one the limit of 1."""
    return [([0.04, 0.01, 0.03],), ([0.01, 0.02, 0.021, 0.2],), ([0.7, 0.6],), ([0.02],)]


def _corrected(
    factor: Callable[[int, int], int] = lambda m, place: m - place, running: bool = True, limit: float = 1.0
) -> Callable[[list[float]], list[float]]:
    """Return Holm's correction with one thing changed. The values keep their order."""

    def correct(ps: list[float]) -> list[float]:
        found, highest = [0.0] * len(ps), 0.0
        for place, at in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
            own = min(limit, factor(len(ps), place) * ps[at])
            highest = max(highest, own)
            found[at] = highest if running else own
        return found

    return correct


holm = Exercise(
    cases=_several,
    solution=_corrected(),
    bugs={
        "all are multiplied by their number (Bonferroni). The factor must go down": _corrected(lambda m, place: m),
        "a value is smaller than the one before it. Keep the largest so far": _corrected(running=False),
        "the smallest value needs the factor m, not m - 1": _corrected(lambda m, place: m - place - 1, running=False),
        "the values are sorted. Return them in the order in which they were given": lambda ps: _corrected()(sorted(ps)),
        "a probability is at most 1": _corrected(limit=math.inf),
        "the values were taken as they stand. Sort them first, then put them back": lambda ps: [
            min(1.0, (len(ps) - i) * p) for i, p in enumerate(ps)
        ],
    },
    praise="the chance of even one wrong verdict in the family is at most the level",
)
