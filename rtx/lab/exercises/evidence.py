"""Checks of notebook 15: choosing a run, and telling a difference from a spread."""

from statistics import mean, median, stdev

from rtx.lab.exercises.exercise import Exercise


def _runs() -> list[tuple[list[float], list[float]]]:
    """New lists each time: an answer that sorts them must not change what it is compared with."""
    return [([3.2, 2.9, 3.0], [3.1, 3.3, 2.8]), ([0.5, 0.4, 0.9, 0.3], [0.2, 0.9, 0.1, 0.6]), ([1.0], [2.0])]


def chosen(validation: list[float], test: list[float]) -> float:
    """The test score of the run that validated best, where less is better."""
    return test[validation.index(min(validation))]


reported = Exercise(
    cases=_runs,
    solution=chosen,
    bugs={
        "the test score chose the run: that is the best of several draws, and no fair one": lambda v, t: min(t),
        "this is the validation score, which chose the run, and so looks too good": lambda v, t: min(v),
        "the mean of all runs; here one was to be chosen": lambda v, t: mean(t),
        "less is better here": lambda v, t: t[v.index(max(v))],
    },
    praise="validation chooses, and the test is looked at once, for what was chosen",
)


def _scores() -> list[tuple[list[float], list[float]]]:
    """Each side is once the larger, and in the third case neither the middle run nor the best one is the mean."""
    return [
        ([3.0, 3.1, 3.2], [3.6, 3.5, 3.4]),
        ([3.0, 3.5, 4.0], [3.3, 3.6, 3.9]),
        ([5.0, 9.0, 5.5, 6.0], [1.0, 2.0, 4.5]),
        ([1.0, 2.0], [9.0, 8.0]),
    ]


spreads_apart = Exercise(
    cases=_scores,
    solution=lambda a, b: abs(mean(a) - mean(b)) / (stdev(a) + stdev(b)),
    bugs={
        "a difference has a size here, not a sign: take its absolute value": lambda a, b: (
            (mean(a) - mean(b)) / (stdev(a) + stdev(b))
        ),
        "a difference has a size here, not a sign: it may be the first that is larger": lambda a, b: (
            (mean(b) - mean(a)) / (stdev(a) + stdev(b))
        ),
        "divided by one spread only: both sides have one": lambda a, b: abs(mean(a) - mean(b)) / stdev(a),
        "divided by the second spread only: both sides have one": lambda a, b: abs(mean(a) - mean(b)) / stdev(b),
        "these are the smallest scores: take means": lambda a, b: abs(min(a) - min(b)) / (stdev(a) + stdev(b)),
        "these are the largest scores: take means": lambda a, b: abs(max(a) - max(b)) / (stdev(a) + stdev(b)),
        "these are medians: take means": lambda a, b: abs(median(a) - median(b)) / (stdev(a) + stdev(b)),
        "this is the variance: a spread is its root": lambda a, b: (
            abs(mean(a) - mean(b)) / (stdev(a) ** 2 + stdev(b) ** 2)
        ),
        "divide by n - 1: the mean was taken from the same few runs": lambda a, b: (
            abs(mean(a) - mean(b))
            / (stdev(a) * ((len(a) - 1) / len(a)) ** 0.5 + stdev(b) * ((len(b) - 1) / len(b)) ** 0.5)
        ),
    },
    praise="above 1, mean ± spread of the two do not touch; below, they do, and one run of each says little",
)
