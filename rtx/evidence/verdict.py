"""How a claim gets its verdict. `questions` says which runs may settle a claim, and this page decides.

**A claim about one model** ("it solves the problem within three epochs") holds if every seed confirms it, and fails if
no seed does. We ask for at least three seeds. This is a count of repetitions and not a test.

**A claim that one model is ahead of another** needs a test, because scores differ between seeds even when two models
are equally good. We use a permutation test. If a score did not depend on the model at all, each way to deal the scores
out to the two models would be equally likely. The p-value is the share of deals in which the ranks of the first model's
scores are at least as good as in the real one. We double p, because a claim can be refuted as well as confirmed. A
model is ahead of several others if it is ahead of each, so the largest of these p counts. A single model that is ahead
of it refutes the claim. This may be any of the others, so the smallest of these p counts, multiplied by the number of
the others.

**Many claims.** Some of many comparisons look clear by chance. Holm's correction over all comparisons of a paper keeps
the chance of even one wrong verdict by comparison below 5 %. This assumes that claims, runs and seeds were fixed before
the first look. On music they were not. Six claims on Nottingham and one on piano pieces are judged by the variant
`strong` now, which we chose after we had seen its results and those of shorter runs; all seven were open and still are.
On the JSB chorales, three models got eight seeds after results of their first three: the R-Transformer, the same
without attention, and the LSTM. And the three claims on chorales that are judged by the variant `strong` were judged by
shorter runs before (15 epochs): one held (p = 0.048, without Transformer-XL among the others), and two were open. With
a dropout of 0.1, two of the three failed (p = 0.0009 against recurrent networks, p = 0.0005 for attention). Then the
dropout became one of the choices of `strong`, too, and these two models got eight seeds again: the same two claims fail
(p = 0.006 and 0.009). Verdicts by count have no bound of this kind.

**Runs that diverged** are not in the ledger, so a comparison is between the seeds that stayed finite. This favours a
model that diverges. So far no verdict of a comparison depends on it.

**What three seeds can show.** Six scores can be dealt to two models in 20 ways. If all three scores of one model are
better than all three of the other, p is 2/20 = 0.1. So three seeds of each model never settle a comparison. Such a
claim stays open, and we only say what its runs suggest. Four seeds of each (p = 2/70 = 0.03) can settle one claim
alone, and six seeds of each (p = 2/924 = 0.002) can settle one of 23. A comparison with too few seeds for any outcome
to be significant is not tested, and does not count in the correction (Tarone, Biometrics 46, 1990).

**"Not needed".** A test cannot show that two models are equally good. A claim that a part is not needed can fail or
stay open, but it cannot hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

LEVEL = 0.05
SEEDS = 3
"""The fewest seeds for a claim about one model."""
MOST_DEALS = 20_000
"""Up to eight seeds of each model, every deal is tried. Beyond that, this many are drawn."""


class Pair(NamedTuple):
    """Scores of two models, one for each seed; larger is better. A score that is not finite is minus infinity."""

    mine: Sequence[float]
    theirs: Sequence[float]


@dataclass(frozen=True)
class Comparison:
    """What a claim compares."""

    ahead: Sequence[Pair]  # each must show the first model ahead; empty if the claim cannot hold
    behind: Sequence[Pair]  # any one may show the first model behind
    leads: Sequence[bool]  # whether the first model leads: for each other model, or for each clear pair of runs


@dataclass(frozen=True)
class Count:
    """Whether each seed of one model confirms a claim, and whether such runs can settle it."""

    confirmed: Sequence[bool]
    conclusive: bool

    @property
    def verdict(self) -> str:
        """Return "holds" if every seed confirms the claim, "fails" if none does, otherwise "open"."""
        if not self.conclusive or len(self.confirmed) < SEEDS or all(self.confirmed) != any(self.confirmed):
            return "open"
        return "holds" if all(self.confirmed) else "fails"


@dataclass(frozen=True)
class Look:
    """What the ledger says of a claim: a sentence with the numbers, and what the verdict is made of (None: no runs)."""

    sentence: str
    evidence: Comparison | Count | None = None


@dataclass(frozen=True)
class Finding:
    """A verdict."""

    verdict: str  # "holds", "fails" or "open"
    sentence: str  # the numbers
    suggests: str = ""  # of an open claim: "for", "against", "both ways", or "" if nothing is clear
    p: float | None = None  # the corrected p-value of a comparison; None if it was not tested


def judge(looks: Sequence[Look]) -> list[Finding]:
    """Return the verdicts on the claims of one paper."""
    compared = {at: look.evidence for at, look in enumerate(looks) if isinstance(look.evidence, Comparison)}
    tests = {at: _test(one) for at, one in compared.items() if one.ahead or one.behind}
    p_values = _corrected(tests)
    return [_finding(look, tests.get(at), p_values.get(at)) for at, look in enumerate(looks)]


class _Test(NamedTuple):
    p: float
    smallest: float  # the p-value of the clearest outcome that so many seeds can have
    ahead: bool


def _finding(look: Look, test: _Test | None, p: float | None) -> Finding:
    if look.evidence is None:
        return Finding("open", look.sentence)
    if isinstance(look.evidence, Count):
        count = look.evidence
        return Finding(count.verdict, look.sentence, _suggests(count.confirmed) if count.verdict == "open" else "")
    suggests = _suggests(look.evidence.leads)
    if test is None:
        return Finding("open", look.sentence, suggests)  # the question says why it is not tested
    if p is None:
        return Finding("open", f"{look.sentence}: too few seeds for a test", suggests)
    sentence = f"{look.sentence}: p = {p:.2g}"
    if p > LEVEL:
        return Finding("open", sentence, suggests, p)
    return Finding("holds" if test.ahead else "fails", sentence, p=p)


def _suggests(true: Sequence[bool]) -> str:
    if not true:
        return ""
    return "for" if all(true) else "both ways" if any(true) else "against"


def _test(comparison: Comparison) -> _Test:
    """Return the two-sided p-value of a comparison."""
    others = max(1, len(comparison.behind))
    ahead = max((permutation_p(*pair) for pair in comparison.ahead), default=1.0)
    behind = others * min((permutation_p(*pair[::-1]) for pair in comparison.behind), default=1.0)
    least_ahead = max((_smallest_p(pair) for pair in comparison.ahead), default=1.0)
    least_behind = others * min((_smallest_p(pair) for pair in comparison.behind), default=1.0)
    return _Test(min(1.0, 2 * min(ahead, behind)), 2 * min(least_ahead, least_behind), ahead < behind)


def permutation_p(mine: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the chance of ranks as good as `mine` if the model made no difference: a one-sided permutation test.

    Ranks, because a run that solved no problem has no finite score.
    """
    from scipy.stats import permutation_test, rankdata

    if min(len(mine), len(theirs)) < 2:  # one run says nothing about the spread
        return 1.0
    ranks = rankdata([*mine, *theirs])
    first, second = ranks[: len(mine)], ranks[len(mine) :]
    found = permutation_test(
        (first, second),
        lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
        n_resamples=MOST_DEALS,
        alternative="greater",
        rng=0,
    )
    return float(found.pvalue)


def _smallest_p(pair: Pair) -> float:
    if min(map(len, pair)) < 2:
        return 1.0
    return 1 / comb(len(pair.mine) + len(pair.theirs), len(pair.mine))


def _corrected(tests: dict[int, _Test]) -> dict[int, float]:
    """Return Holm's p-values of the tests that could be significant in this family; Tarone (1990) finds these."""
    size = 1  # the smallest number such that at most so many tests can reach LEVEL / size
    while sum(test.smallest <= LEVEL / size for test in tests.values()) > size:
        size += 1
    tested = {at: test.p for at, test in tests.items() if test.smallest <= LEVEL / size}
    found, highest = {}, 0.0
    for place, at in enumerate(sorted(tested, key=lambda at: tested[at])):
        highest = max(highest, min(1.0, (len(tested) - place) * tested[at]))
        found[at] = highest
    return found
