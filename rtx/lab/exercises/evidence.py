"""Exercises of notebook 15: choosing a run, a permutation test, and Holm's correction."""

from itertools import combinations
from statistics import mean

from rtx.lab.exercises.exercise import bug, exercise


@exercise(lambda: [([3.2, 2.9, 3.0], [3.1, 3.3, 2.8]), ([0.5, 0.4, 0.9, 0.3], [0.2, 0.9, 0.1, 0.6])])
@bug("this is the smallest test loss. The test data must not choose: let `validation` choose", lambda v, t: min(t))
@bug("this is a validation loss. It chose the run, so it is too good. Return the test loss", lambda v, t: min(v))
@bug("this is the mean of all test losses. Choose one run", lambda v, t: mean(t))
@bug("this run has the largest validation loss. Less is better here", {"min(": "max("})
def reported(validation: list[float], test: list[float]) -> float:
    """Validation chooses, and the test loss of the chosen run is reported."""
    return test[validation.index(min(validation))]


# both orders of the means, unequal numbers of scores, and equal scores
@exercise(
    lambda: [
        ([3.0, 4.0, 5.0], [1.0, 2.0, 2.5]),
        ([1.0, 5.0, 2.0], [3.0, 4.0, 0.5, 2.5]),
        ([2.0, 2.0, 3.0], [1.0, 2.0, 0.5]),
    ]
)
@bug(
    "equal scores of two runs are two scores, so equal deals count separately",
    {"combinations([*a, *b], len(a))": "set(combinations(sorted([*a, *b]), len(a)))"},
)
@bug("count deals that are exactly as good, too, as the real one is. Use >=", {">=": ">"})
@bug("these deals are at most as good. Count those that are at least as good", {">=": "<="})
@bug("this is a number of deals. Divide by the number of all deals", {" / len(deals)": ""})
@bug("each deal must give the first model len(a) scores", {"len(a)": "len(b)"})
def permutation_p(a: list[float], b: list[float]) -> float:
    """The smaller the share, the harder it is to explain the lead by chance."""
    deals = [sum(deal) for deal in combinations([*a, *b], len(a))]
    return sum(deal >= sum(a) for deal in deals) / len(deals)


# not in order; one case needs the largest so far, one the limit of 1
@exercise(lambda: [([0.04, 0.01, 0.03],), ([0.01, 0.02, 0.021, 0.2],), ([0.7, 0.6],), ([0.02],)])
@bug("all are multiplied by their number (Bonferroni). The factor must go down", {" - place": ""})
@bug("a value is smaller than the one before it. Keep the largest so far", {"max(highest": "max(0"})
@bug("the values are sorted. Return them in the order in which they were given", {"found[at]": "found[place]"})
@bug("a probability is at most 1", {"min(1.0, ": "min(9.0, "})
@bug("the values were not sorted: sort them, then put them back", {", key=ps.__getitem__": "", "max(highest": "max(0"})
def holm(ps: list[float]) -> list[float]:
    """The chance of even one wrong verdict in the family is at most the level."""
    found, highest = [0.0] * len(ps), 0.0
    for place, at in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[at]))
        found[at] = highest
    return found
