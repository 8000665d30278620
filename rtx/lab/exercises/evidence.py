"""Checks of notebook 15: choosing a run, a permutation test, and Holm's correction."""

from collections.abc import Callable
from itertools import combinations
from operator import ge, gt, le
from statistics import mean, median

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


def chosen(validation: list[float], test: list[float]) -> float:
    """The test score of the run that validated best, where less is better."""
    return test[validation.index(min(validation))]


reported = Exercise(
    cases=_runs,
    solution=chosen,
    bugs={
        "this is the smallest test loss. The test data must not choose: let `validation` choose": lambda v, t: min(t),
        "this is a validation loss. It chose the run, so it is too good. Return the test loss": lambda v, t: min(v),
        "this is the mean of all test losses. Choose one run": lambda v, t: mean(t),
        "this is the median of all test losses. Choose one run": lambda v, t: median(t),
        "this run has the largest validation loss. Less is better here": lambda v, t: t[v.index(max(v))],
        "this is the first run's test loss. Choose by `validation`": lambda v, t: t[0],
        "this is the last run's test loss. Choose by `validation`": lambda v, t: t[-1],
        "this is the place of the run in the list. Return its test loss": lambda v, t: v.index(min(v)),
        "test chose the run, and its validation loss came back: the two lists are swapped": lambda v, t: chosen(t, v),
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
    return sum(abs(deal / len(a) - (total - deal) / len(b)) >= real for deal in deals) / len(deals)


permutation_p = Exercise(
    cases=_scores,
    solution=permuted,
    bugs={
        "count a deal that is exactly as good, too: the real deal is one of them. Use >=": lambda a, b: permuted(
            a, b, gt
        ),
        "these are the deals that are at most as good. Count those that are at least as good": lambda a, b: permuted(
            a, b, le
        ),
        "this counts both directions. Count the deals in which the first group is at least as good": _as_far,
        "this is already doubled. Return the share itself": lambda a, b: 2 * permuted(a, b),
        "this is a number of deals. Divide by the number of all deals": lambda a, b: (
            permuted(a, b) * sum(1 for _ in combinations([*a, *b], len(a)))
        ),
        "each deal must give the first model as many scores as it really has, len(a)": lambda a, b: permuted(
            a, b, size=len(b)
        ),
        "this is the share of pairs in which a is larger than b. Deal out all scores anew": lambda a, b: mean(
            one > other for one in a for other in b
        ),
        "this compares the best scores of the groups. Compare their means": lambda a, b: mean(
            max(deal) >= max(a) for deal in combinations([*a, *b], len(a))
        ),
        "equal scores were counted once, as a `set` does. Deal out all scores": lambda a, b: mean(
            sum(deal) >= sum(a) for deal in combinations(sorted({*a, *b}), len(a))
        ),
    },
    praise="the smaller the share, the harder it is to explain the lead by chance",
)


def _several() -> list[tuple[list[float]]]:
    """Not in order; one case needs the running maximum, one the limit of 1."""
    return [([0.04, 0.01, 0.03],), ([0.01, 0.02, 0.021, 0.2],), ([0.7, 0.6],), ([0.02],)]


def corrected(ps: list[float]) -> list[float]:
    """Holm's p-values, in the order of the given ones."""
    found, highest = [0.0] * len(ps), 0.0
    for place, at in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[at]))
        found[at] = highest
    return found


def _factors(ps: list[float], factor: Callable[[int, int], float]) -> list[float]:
    """The p-values times a factor that depends on their number and their place, without a running maximum."""
    places = sorted(range(len(ps)), key=ps.__getitem__)
    return [min(1.0, factor(len(ps), places.index(at)) * ps[at]) for at in range(len(ps))]


holm = Exercise(
    cases=_several,
    solution=corrected,
    bugs={
        "these are the given values. Multiply the smallest by their number, the next by one less": lambda ps: [*ps],
        "all are multiplied by their number (Bonferroni). The factor goes down from place to place": lambda ps: (
            _factors(ps, lambda m, i: m)
        ),
        "a value is smaller than the one before it. Keep the largest so far": lambda ps: _factors(
            ps, lambda m, i: m - i
        ),
        "the smallest value needs the factor m, not m - 1": lambda ps: _factors(ps, lambda m, i: m - i - 1),
        "the factors go up. The smallest value needs the largest factor": lambda ps: _factors(ps, lambda m, i: i + 1),
        "this is the correction of Benjamini and Hochberg without its last step. It is less strict": lambda ps: (
            _factors(ps, lambda m, i: m / (i + 1))
        ),
        "the values are sorted. Return them in the order in which they were given": lambda ps: sorted(corrected(ps)),
        "a probability is at most 1": lambda ps: [
            len(ps) * corrected([p / len(ps) for p in ps])[i] for i in range(len(ps))
        ],
        "the values were taken as they stand. Sort them first, then put them back": lambda ps: [
            min(1.0, (len(ps) - i) * p) for i, p in enumerate(ps)
        ],
    },
    praise="the chance of even one wrong verdict in the family is at most the level",
)
