"""Verdicts are judged from scores alone. The oracle deals the scores out by hand."""

from itertools import combinations
from math import inf

import pytest

from rtx.evidence.verdict import Comparison, Count, Look, Pair, judge, permutation_p


def look(mine, *theirs, can_hold=True):
    pairs = [Pair(mine, one) for one in theirs]
    leads = [sum(mine) / len(mine) > sum(one) / len(one) for one in theirs]
    return Look("numbers", Comparison(pairs if can_hold else (), pairs, leads))


def verdicts(*looks):
    return [finding.verdict for finding in judge(looks)]


def dealt_p(mine, theirs):
    """Return the share of deals of the scores in which the first model does at least as well, by its mean rank."""
    scores = [*mine, *theirs]
    rank = [sum(o < s for o in scores) + 0.5 * sum(o == s for o in scores) for s in scores]
    real = sum(rank[: len(mine)])
    deals = [sum(rank[i] for i in places) for places in combinations(range(len(scores)), len(mine))]
    return sum(deal >= real - 1e-9 for deal in deals) / len(deals)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ([3.0, 4.0, 5.0], [0.0, 1.0, 2.0]),
        ([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]),
        ([1.0, 4.0, 2.0, 8.0], [0.0, 3.0, 2.0]),
        ([-1.0, -inf, -2.0], [-3.0, -inf, -inf]),
        ([1.0, 1.0], [1.0, 1.0]),
        ([0.3, 0.5, 0.1, 0.9, 0.8], [0.2, 0.4, 0.6, 0.7, 0.05]),
    ],
)
def test_the_p_value_is_the_share_of_deals_that_are_as_good(mine, theirs):
    assert permutation_p(mine, theirs) == pytest.approx(dealt_p(mine, theirs))


def test_three_seeds_settle_no_comparison_and_four_settle_one_alone():
    three, four = ([5.0, 6.0, 7.0], [1.0, 2.0, 3.0]), ([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0])
    assert verdicts(look(*three)) == ["open"]
    assert verdicts(look(*four)) == ["holds"]
    assert verdicts(look(*four[::-1])) == ["fails"]
    (open_,) = judge([look(*three)])
    assert (open_.suggests, open_.p) == ("for", None)


def test_holms_correction_counts_the_comparisons_that_could_be_significant():
    """Four seeds (p = 2/70) settle one claim but not two. Claims of three seeds do not count."""
    four, three = look([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]), look([5.0, 6.0, 7.0], [1.0, 2.0, 3.0])
    assert verdicts(four, three, three) == ["holds", "open", "open"]
    assert verdicts(four, four) == ["open", "open"]
    six = look([*map(float, range(6, 12))], [*map(float, range(6))])
    assert verdicts(six, *[four] * 30) == ["holds"] + ["open"] * 30  # no four seeds could be significant among 30
    assert verdicts(*[six] * 23) == ["holds"] * 23
    assert verdicts(*[six] * 24) == ["open"] * 24  # 24 x 2/924 is above 5 %
    (first, second) = judge([six, look([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 3.0, 5.0, 7.0, 9.0, 11.0])])
    assert first.p == pytest.approx(2 * 2 / 924) and second.p is not None and second.p > 0.5


def test_a_model_must_be_ahead_of_each_other_and_one_that_is_ahead_refutes_it():
    low, high, mine = [0.0, 1.0, 2.0, 3.0, 4.0], [20.0, 21.0, 22.0, 23.0, 24.0], [10.0, 11.0, 12.0, 13.0, 14.0]
    assert verdicts(look(mine, low, low)) == ["holds"]
    assert verdicts(look(mine, low, high)) == ["fails"]
    assert verdicts(look(mine, low, [9.0, 10.5, 11.5, 12.5, 15.0])) == ["open"]
    (finding,) = judge([look(mine, low, high)])
    assert finding.p == pytest.approx(2 * 2 / 252)  # two others, two sides


def test_that_a_part_is_not_needed_can_fail_but_never_hold():
    low, high = [0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]
    assert verdicts(look(low, high, can_hold=False)) == ["fails"]
    (finding,) = judge([look(high, low, can_hold=False)])
    assert (finding.verdict, finding.suggests) == ("open", "for")


def test_a_count_holds_if_each_of_three_seeds_confirms_it_and_fails_if_none_does():
    def count(*confirmed, conclusive=True):
        (finding,) = judge([Look("numbers", Count(confirmed, conclusive))])
        return finding.verdict, finding.suggests

    assert count(True, True, True) == ("holds", "")
    assert count(False, False, False) == ("fails", "")
    assert count(True, False, True) == ("open", "both ways")
    assert count(True, True) == ("open", "for")
    assert count(False, False, False, conclusive=False) == ("open", "against")
    assert count() == ("open", "")


def test_without_runs_a_claim_is_open_and_nothing_is_suggested():
    (finding,) = judge([Look("not run")])
    assert (finding.verdict, finding.sentence, finding.suggests) == ("open", "not run", "")
