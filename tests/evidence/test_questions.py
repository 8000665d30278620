"""Which runs a question compares: those of one budget, of the chosen rates, of an unchanged model."""

from itertools import product
from math import inf, nan
from pathlib import Path

import pytest

from rtx.evidence.claim import claims, judged
from rtx.evidence.counted import order_blind
from rtx.evidence.questions import QUESTIONS
from rtx.evidence.verdict import Comparison, Count
from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES
from rtx.training.recipe import load_recipe

RESULTS = Path(__file__).parents[2] / "results"
SOLVED = {"recipe": "ffa-add", "variant": "sloped+learning_rate=0.01", "validation": 1.0, "epoch": 1}
TWO_RATES = {"variant": "sloped", "chosen_from": {"learning_rate=0.001": 1.0, "learning_rate=0.01": 1.0}}
CUT = {"epoch": 1, "validation": 0.6, "budget": "1 of 100 epochs"}
MULTIPLY = {"recipe": "ffa-multiply"}


@pytest.fixture
def scores(tmp_path):
    """Return a function that gives the compared scores of a row and of each other; lower is better in nottingham."""

    def compared(question, recipe, model, others, **what):
        look = QUESTIONS[question](tmp_path, recipe=recipe, model=model, others=others, **what)
        assert isinstance(look.evidence, Comparison), look
        return [(list(pair.mine), list(pair.theirs)) for pair in look.evidence.behind]

    return compared


def sentence(find, *others, **what):
    return find("ahead", "nottingham", "gru", others, **what).sentence


def test_full_runs_are_compared_seed_by_seed_and_lower_scores_win_where_they_should(put, find, scores):
    put("gru", [3.0, 3.1, 3.2, 3.3])
    put("lstm", [4.0, 4.1, 4.2, 4.3])
    put("gru", [90.0, 91.0, 92.0, 93.0], recipe="mnist")
    put("lstm", [80.0, 81.0, 82.0, 83.0], recipe="mnist")
    assert scores("ahead", "nottingham", "gru", ["lstm"]) == [([-3.0, -3.1, -3.2, -3.3], [-4.0, -4.1, -4.2, -4.3])]
    assert scores("ahead", "mnist", "gru", ["lstm"]) == [([90.0, 91.0, 92.0, 93.0], [80.0, 81.0, 82.0, 83.0])]
    assert find("ahead", "nottingham", "gru", ["lstm"]).verdict == "holds"
    assert find("ahead", "nottingham", "lstm", ["gru"]).verdict == "fails"
    some = find("ahead", "nottingham", "gru", ["lstm", "tcn"])  # tcn was not run
    assert (some.verdict, some.suggests) == ("open", "")
    put("tcn", 9.0, budget="1 of 15 epochs")
    put("rnn", 9.0)
    assert find("ahead", "nottingham", "gru", ["lstm", "rnn"]).verdict == "open"  # one seed


def test_runs_that_were_cut_only_suggest(put, find):
    put("gru", [3.0, 4.0, 5.0, 6.0, 7.0], budget="2 of 15 epochs")
    put("lstm", [13.0, 14.0, 15.0, 16.0, 17.0], budget="2 of 15 epochs")
    found = find("ahead", "nottingham", "gru", ["lstm"])
    assert (found.verdict, found.suggests, found.p) == ("open", "for", None)
    assert find("ahead", "nottingham", "lstm", ["gru"]).suggests == "against"


@pytest.mark.parametrize("score", [nan, inf])
def test_a_run_that_diverged_has_the_worst_rank(put, find, scores, score):
    for seed in range(4):
        put("gru", 3.0 + seed, seed, details={"with cache": 3.0 + seed})
        put("lstm", 9.0, seed, details={"with cache": score if seed == 1 else 13.0 + seed})
    ((_, theirs),) = scores("ahead", "nottingham", "gru", ["lstm"], detail="with cache")
    assert theirs == [-13.0, -inf, -15.0, -16.0]
    assert find("ahead", "nottingham", "gru", ["lstm"], detail="with cache").verdict == "holds"


def test_the_norm_and_the_positions_that_the_variant_strong_chose_count_and_other_changes_do_not(put, scores):
    put("transformer", [2.0, 3.0, 4.0], variant="strong+learning_rate=0.001+norm=pre+position=relative")
    put("r-transformer", [3.0, 4.0, 5.0], variant="strong+norm=pre")
    put("r-transformer", [1.0] * 3, variant="strong+cell=convolution")
    pair = [-3.0, -4.0, -5.0], [-2.0, -3.0, -4.0]
    assert scores("ahead", "nottingham", "r-transformer", ["transformer"], variant="strong") == [pair]
    put("transformer", 9.0, variant="adam+position=relative")
    put("r-transformer", 9.0)
    assert scores("ahead", "nottingham", "r-transformer", ["transformer"], variant="strong") == [pair]


def test_equal_scores_are_no_lead(put, find):
    for recipe in ("nottingham", "mnist"):
        put("gru", 90.0, recipe=recipe)
        put("lstm", 90.0, recipe=recipe)
        assert find("ahead", recipe, "gru", ["lstm"]).suggests == "against"


def test_a_margin_must_be_exceeded(put, find):
    put("gru", [2.0, 2.01, 2.02, 2.03])
    put("lstm", [3.0, 3.01, 3.02, 3.03])
    verdicts = [find("ahead", "nottingham", "gru", ["lstm"], margin=m).verdict for m in (0.5, 1.0, 1.5)]
    assert verdicts == ["holds", "open", "fails"]


def test_of_several_rates_validation_chooses_on_the_seeds_that_both_have(put, find):
    put("gru", 3.0)
    put("lstm", 2.5, validation=2.9, variant="adam+learning_rate=0.1")  # best test score, but not chosen
    put("lstm", 2.8, validation=2.7, variant="adam+learning_rate=0.2")
    put("lstm", 2.6, validation=2.8, variant="adam+learning_rate=0.3")
    assert sentence(find, "lstm").startswith("gru 3.00; lstm 2.80 (")
    assert "best of several rates for lstm" in sentence(find, "lstm")
    for seed, validation in enumerate((2.9, 3.1, 3.1)):
        put("tcn", 3.0, seed, validation=validation)
    # better than the others' mean, but not than seed 0
    put("tcn", 5.0, validation=3.0, variant="adam+learning_rate=0.01")
    assert "tcn 3.00 ± 0.00" in sentence(find, "tcn")


@pytest.mark.parametrize(
    "change", ["d_model=999", "limit=87", "dropout=0", "optimizer=sgd", "learning_rate=0.1+window=12"]
)
def test_a_changed_model_does_not_represent_its_row(put, find, change):
    put("gru", 3.0)
    put("lstm", 4.0, variant="adam+epochs=30")  # trained longer, and still its row
    put("lstm", 1.0, validation=0.1, variant=f"adam+{change}")
    assert sentence(find, "lstm").startswith("gru 3.00; lstm 4.00 (full budget")


def test_one_budget_is_compared_full_runs_first_then_more_seeds(put, find):
    put("gru", 3.0)
    put("lstm", 2.0, scale="quick")
    put("gru", 5.0, scale="quick")
    assert sentence(find, "lstm").startswith("gru 5.00; lstm 2.00 (scale quick")
    put("lstm", 4.0)
    put("gru", [6.0] * 3, scale="cpu")
    put("lstm", [7.0] * 3, scale="cpu")
    assert sentence(find, "lstm").startswith("gru 3.00; lstm 4.00 (full budget, 1 seed")
    for other in ("tcn", "rnn", "transformer"):
        put(other, 4.0, budget="5 of 15 epochs")
    assert "not run: tcn, rnn" in sentence(find, "lstm", "tcn", "rnn")  # the first row has no run of that budget


def test_of_two_variants_the_one_with_more_seeds_is_compared(put, find):
    for variant, test, seeds in (("adam", 5.0, 1), ("official", 3.0, 2)):
        put("gru", [test] * seeds, variant=variant)
        put("lstm", [test + 1] * seeds, variant=variant)
    assert sentence(find, "lstm").startswith("gru 3.00 ± 0.00; lstm 4.00 ± 0.00 (full budget, 2 seeds")


def test_models_made_equal_are_compared_only_with_each_other(put, find):
    put("gru", 3.0)
    put("lstm", 4.0)
    for model, test in (("gru", 5.0), ("lstm", 2.0)):
        put(model, test, variant="same-seconds+seconds=60", budget="60 of 3600 seconds")
    assert sentence(find, "lstm").startswith("gru 3.00; lstm 4.00 (full budget")
    assert sentence(find, "lstm", variant="same-seconds").startswith("gru 5.00; lstm 2.00 (same-seconds+seconds=60")
    assert sentence(find, "lstm", variant="same-parameters") == "not run"


def test_a_row_that_a_variant_does_not_change_represents_itself(put, find):
    put("r-transformer", 2.2)
    put("transformer", 3.4, variant="same-parameters")
    put("gru", 3.0)  # the variant makes it wider
    what = {"others": ["transformer"], "variant": "same-parameters"}
    found = find("ahead", "nottingham", "r-transformer", **what)
    assert found.sentence.startswith("r-transformer 2.20; transformer 3.40 (same-parameters, full budget")
    assert find("ahead", "nottingham", "gru", **what).sentence == "not run"


def test_a_row_may_have_a_variant_of_its_own(put, find):
    put("transformer-xl", 83.4, recipe="ptb-word", variant="paper-xl", metric="perplexity")
    put("r-transformer", 84.4, recipe="ptb-word", variant="paper", metric="perplexity")
    what = ("ahead", "ptb-word", "transformer-xl", ["r-transformer"])
    assert find(*what).sentence == "not run"
    assert find(*what, own={"transformer-xl": "paper-xl"}).suggests == "for"


def test_with_seconds_as_the_budget_only_runs_of_one_machine_are_compared(put, find):
    equal = {"variant": "same-seconds+seconds=60", "budget": "60 of 3600 seconds"}
    put("gru", 3.0, hardware="one", validation=3.0, **equal)
    put("lstm", 2.0, hardware="one", validation=2.0, **equal)
    put("gru", [4.0] * 3, hardware="another", validation=4.0, **equal)
    put("lstm", [5.0] * 3, hardware="another", validation=5.0, **equal)
    found = find("ahead", "nottingham", "gru", ["lstm"], variant="same-seconds")
    assert found.sentence.startswith("gru 4.00 ± 0.00; lstm 5.00 ± 0.00 (") and found.suggests == "for"


def test_a_smaller_scale_has_sizes_of_its_own_so_nothing_is_equal_there(put, find):
    for row, variant in product(("gru", "lstm"), ("same-parameters", "same-flops", "same-seconds")):
        put(row, 3.0, variant=variant, scale="quick")
    for variant in ("same-parameters", "same-flops"):
        assert sentence(find, "lstm", variant=variant) == "not run"
    assert sentence(find, "lstm", variant="same-seconds") != "not run"


def test_translations_are_compared_by_bleu_although_perplexity_chooses_the_rate(put, find):
    own = load_recipe("multi30k").default_variant
    for row, change, bleu, perplexity in (
        ("baseline", "", 30.0, 5.0), ("baseline", "+learning_rate=1", 20.0, 9.0),
        ("baseline", "+layers=1", 22.0, 4.0), ("baseline-large", "", 25.0, 6.0),
    ):  # fmt: skip
        scores = [bleu + seed / 10 for seed in range(4)]
        put(row, scores, recipe="multi30k", variant=own + change, validation=perplexity)
    assert find("ahead", "multi30k", "baseline", ["baseline-large"]).verdict == "holds"
    assert find("ahead", "multi30k", "baseline-large", ["baseline"]).verdict == "fails"
    assert find("not_needed", "multi30k", "baseline", ["baseline-large"]).suggests == "for"
    assert find("not_needed", "multi30k", "baseline-large", ["baseline"]).verdict == "fails"
    assert find("needs", "multi30k", "baseline", changes=["layers=1"]).verdict == "holds"


def test_a_part_is_needed_if_the_model_without_it_is_behind(put, find):
    put("r-transformer", [2.2, 2.3, 2.4, 2.5])
    put("r-transformer", [1.0, 1.1, 1.2, 1.3], variant="adam+window=12")
    put("r-transformer", [3.5, 3.6, 3.7, 3.8], variant="adam+heads=0")
    put("r-transformer", [1.0] * 4, variant="adam+heads=0", scale="quick")
    verdicts = [find("needs", "nottingham", "r-transformer", changes=[one]).verdict for one in ("heads=0", "window=12")]
    assert verdicts == ["holds", "fails"]
    assert "not run: window=2" in find("needs", "nottingham", "r-transformer", changes=["heads=0", "window=2"]).sentence


def test_in_the_variant_strong_each_model_has_the_settings_that_validation_chose(put, find):
    put("r-transformer", [2.2, 2.3, 2.4, 2.5], variant="strong+learning_rate=0.001")
    put("r-transformer", [1.0, 1.1, 1.2, 1.3], variant="strong+dropout=0.3+heads=0+learning_rate=0.0002+norm=pre")
    put("r-transformer", [9.0] * 4, variant="strong+heads=0+learning_rate=0.002", validation=9.0)  # a worse choice
    asked = {"changes": ["heads=0"], "variant": "strong"}
    assert find("needs", "nottingham", "r-transformer", **asked).verdict == "fails"


@pytest.mark.parametrize(("scores_", "sense", "confirmed"), [
    ([74, 75, 73], "<=", [True, True, True]), ([76, 74, 77], "<=", [False, True, False]),
    ([75, 74], ">=", [True, False]),
])  # fmt: skip
def test_a_bound_is_checked_seed_by_seed(put, tmp_path, scores_, sense, confirmed):
    put("attention", scores_, recipe="ffa-order")
    look = QUESTIONS["bound"](tmp_path, recipe="ffa-order", model="attention", bound=75.0, sense=sense)
    assert look.evidence == Count(confirmed, True)


def test_a_bound_is_settled_by_full_runs_of_the_recipes_own_variant(put, find):
    def found():
        return find("bound", "ffa-multiply", "mean-5000", bound=0.898, sense="<=")

    put("mean-5000", 0.95, **MULTIPLY, variant="padded")
    assert found().sentence == "not run"
    put("mean-5000", 0.85, **MULTIPLY, variant="sloped", budget="5 of 100 epochs")
    assert (found().verdict, found().suggests) == ("open", "")  # more training may lead above the bound
    assert found().sentence.startswith("mean-5000 0.850, bound 0.898")
    put("mean-5000", [0.95] * 3, **MULTIPLY, variant="sloped", budget="6 of 100 epochs")
    assert found().verdict == "fails"  # more training cannot take this back
    put("mean-5000", [0.85] * 3, **MULTIPLY, variant="sloped+learning_rate=0.01")
    assert found().verdict == "holds"


def test_a_bound_is_checked_with_the_rate_that_validation_prefers(put, find):
    for rate, score in ((0.01, 3.0), (0.003, 2.0), (0.001, 4.0)):  # perplexity: lower is better
        put("gru", score, variant=f"adam+learning_rate={rate}", validation=score)
    assert find("bound", "nottingham", "gru", bound=3.5, sense="<=").sentence.startswith("gru 2.000, bound 3.5 ")


def test_the_order_tasks_bound_is_counted_on_the_test_split():
    targets = [int(one.target) for one in task_by_name("temporal-order", size=7).examples("test")]
    xy, yx = (targets.count(CLASSES.index(name)) for name in ("XY", "YX"))
    assert order_blind() == pytest.approx((1000 - min(xy, yx)) / 10)


def solved(find, row="mean-50", **what):
    return find("solves", "ffa-add", row, **what)


def test_a_toy_problem_is_solved_by_full_scale_runs_of_the_variant(put, find):
    put("mean-50", [1.0] * 3, **SOLVED, scale="cpu")
    put("mean-50", [1.0] * 3, **SOLVED | {"variant": "official", "epoch": 7})
    assert solved(find).sentence == "not run"
    assert solved(find, variant="official").sentence.startswith("solved after epoch 7, 7, 7, in the paper 1")
    put("mean-50", [0.998] * 3, **SOLVED)
    assert solved(find).verdict == "holds"
    put("mean-50", 1.0, 0, **SOLVED | {"validation": 0.999})  # one sequence of a thousand is missing
    assert solved(find).sentence.startswith("solved after epoch never, 1, 1")


@pytest.mark.parametrize(("late", "compared", "verdict"), [
    (3, 3, "fails"), (3, 2, "open"), (3, 0, "open"), (1, 3, "open"), (0, 0, "holds"),
])  # fmt: skip
@pytest.mark.parametrize("change", [{"epoch": 2}, {"validation": 0.6}])
def test_it_fails_only_with_the_best_rate_of_each_seed(put, find, change, late, compared, verdict):
    for seed in range(3):
        tried = TWO_RATES if seed < compared else {}
        put("mean-50", 0.998, seed, **SOLVED | tried | (change if seed < late else {}))
    assert solved(find).verdict == verdict


@pytest.mark.parametrize(("budgets", "verdict", "suggests"), [
    (["2 of 100 epochs", "8 of 100 epochs", None], "fails", ""),
    (["2 of 100 epochs", "1 of 100 epochs", None], "open", "against"),
    (["1 of 100 epochs"] * 3, "open", ""),
])  # fmt: skip
def test_a_run_cut_before_the_papers_epochs_says_nothing(put, find, budgets, verdict, suggests):
    for seed, budget in enumerate(budgets):
        put("mean-1000", 0.6, seed, **SOLVED | TWO_RATES | {"validation": 0.6, "budget": budget})
    found = solved(find, "mean-1000")
    assert (found.verdict, found.suggests) == (verdict, suggests)


def test_with_one_rate_it_may_hold_where_the_best_rates_were_cut(put, find):
    """The best rate of a seed needs no more epochs than any other rate."""
    put("attention-5000", [0.6] * 3, **SOLVED | TWO_RATES | CUT)
    put("attention-5000", [1.0] * 3, **SOLVED | {"epoch": 2})
    assert solved(find, "attention-5000").verdict == "holds"


def test_each_seed_is_judged_by_its_own_rate_and_its_longest_run(put, find):
    for seed, rate in enumerate((0.01, 0.003, 0.01)):
        put("mean-1000", 1.0, seed, **SOLVED | {"variant": f"sloped+learning_rate={rate}", "epoch": seed + 1} | {
            "chosen_from": TWO_RATES["chosen_from"]})  # fmt: skip
    put("mean-1000", 1.0, 1, **SOLVED | {"epoch": 9})  # another rate, which was not chosen
    assert solved(find, "mean-1000").sentence.startswith("solved after epoch 1, 2, 3, in the paper 2")
    put("mean-500", [0.6] * 3, **SOLVED | CUT)
    put("mean-500", [1.0] * 3, **SOLVED | {"epoch": 4, "budget": "40 of 100 epochs"})
    assert solved(find, "mean-500").sentence.startswith("solved after epoch 4, 4, 4")
    # a search that was cut chose the rate; a longer run with this rate goes on from there
    put("mean-5000", [0.6] * 3, **TWO_RATES | SOLVED | CUT | {"budget": "2 of 100 epochs"})
    put("mean-5000", 0.6, **SOLVED | {"epoch": 9})
    put("mean-5000", [0.6] * 2, 1, **SOLVED | CUT | {"budget": "8 of 100 epochs"})
    assert solved(find, "mean-5000").sentence.startswith("solved after epoch 9, >8, >8, in the paper 8")


def race(find, **what):
    return find("sooner", "ffa-add", "attention-50", ["mean-50"], **what)


@pytest.mark.parametrize(("attention", "mean", "verdict"), [
    ((1, 2, 1, 2), (3, 4, 3, 5), "holds"), ((1, 3, 1, 2), (3, 4, 3, 5), "open"), ((3, 3, 3, 4), (2, 1, 2, 1), "fails"),
    ((1, 2, 1), (3, 4, 3), "open"),
])  # fmt: skip
def test_a_model_is_sooner_by_a_test_on_its_epochs(put, find, attention, mean, verdict):
    assert race(find).sentence == "not run"
    for row, epochs in (("attention-50", attention), ("mean-50", mean)):
        for seed, epoch in enumerate(epochs):
            put(row, 1.0, seed, **SOLVED | TWO_RATES | {"epoch": epoch})
    assert race(find).verdict == verdict
    assert race(find, variant="padded").sentence == "not run"


@pytest.mark.parametrize(("budget", "verdict", "suggests"), [
    (None, "holds", ""),  # never solved, in all its epochs
    ("2 of 100 epochs", "holds", ""),  # solved in epoch 3 at the soonest
    ("1 of 100 epochs", "open", ""),  # perhaps solved in epoch 2
    ("60 of 3600 seconds", "open", ""),
])  # fmt: skip
def test_a_run_that_was_cut_could_have_solved_it_in_the_next_epoch(put, find, budget, verdict, suggests):
    put("attention-50", [1.0] * 4, **SOLVED | TWO_RATES | {"epoch": 2})
    put("mean-50", [0.6] * 4, **SOLVED | TWO_RATES | CUT | {"budget": budget})
    assert (race(find).verdict, race(find).suggests) == (verdict, suggests)


def test_a_run_that_was_cut_is_no_evidence_for_its_model(put, find):
    put("attention-50", [0.6] * 4, **SOLVED | TWO_RATES | CUT)
    put("mean-50", [1.0] * 4, **SOLVED | TWO_RATES | {"epoch": 3})
    assert race(find).verdict == "open"
    assert find("sooner", "ffa-add", "mean-50", ["attention-50"]).verdict == "open"


@pytest.mark.parametrize("late", ["attention-50", "mean-50"])
def test_a_model_that_compared_no_rates_cannot_be_shown_to_be_later(put, find, late):
    for row in ("attention-50", "mean-50"):
        put(row, [1.0] * 4, **SOLVED | ({"epoch": 5} if row == late else TWO_RATES | {"epoch": 2}))
    assert race(find).verdict == "open"
    put(late, [1.0] * 4, **SOLVED | TWO_RATES | {"epoch": 5})
    assert race(find).verdict == ("holds" if late == "mean-50" else "fails")


def test_what_the_benchmark_measured_settles_nothing(tmp_path):
    assert "times the time" in QUESTIONS["timed"](RESULTS, case="mc-rnn", ratio="rtx / nn.LSTM").sentence
    assert QUESTIONS["timed"](tmp_path, case="mc-rnn", ratio="rtx / nn.LSTM").sentence == "not measured"


def test_every_claim_has_a_name_of_its_own_and_is_judged_by_any_ledger(tmp_path):
    assert len({claim.name for claim in claims()}) == len(claims())
    assert [claim for claim, _ in judged(RESULTS)] == list(claims())
    without = {claim.name: finding for claim, finding in judged(tmp_path)}
    decided = {name: finding.verdict for name, finding in without.items() if finding.verdict != "open"}
    assert decided == {"path-shortest": "holds", "path-longest": "fails"}


def test_the_papers_printed_numbers_support_every_claim_that_they_are_the_source_of(put, tmp_path):
    """A ledger with the papers' own scores: the runs must point the way that the claim says."""
    for name in {claim.what["recipe"] for claim in claims() if "recipe" in claim.what}:
        loaded = load_recipe(name)
        variants = {loaded.default_variant, "padded", "official", "fresh", "paper-xl"} & {*loaded.variants}
        for row, variant in product(loaded.models, variants):
            score, epoch = loaded.paper(row), loaded.paper_epochs(row) or 1
            if score is not None:
                made = {"recipe": name, "variant": variant, "chosen_from": {"learning_rate=0.01": score}}
                put(row, [score] * 3, validation=score, epoch=epoch, **made)
    papers = ("R-Transformer", "MC-RNN", "Feed-forward attention")
    found = {c.name: f for c, f in judged(tmp_path) if c.source.startswith(papers) and f.sentence != "not run"}
    against = [name for name, finding in found.items() if finding.verdict == "fails" or finding.suggests == "against"]
    assert against == ["path-longest"] and len(found) > 60
