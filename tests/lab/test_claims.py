"""Claims are judged by the ledger: by means and spreads of what was run under one budget, and by nothing else."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from rtx.evidence.claims import CLAIMS, judged
from rtx.evidence.counted import order_blind
from rtx.evidence.ledger import read_results, write_result
from rtx.evidence.toy_verdicts import solves, sooner
from rtx.evidence.verdicts import Finding, as_fast, better, breaks, needs, no_worse, within
from rtx.lab.evidence import Evidence
from rtx.tasks import task_by_name
from rtx.tasks.toy.temporal_order import CLASSES
from rtx.training.recipe import load_recipe

RESULTS = Path(__file__).parents[2] / "results"
SOLVED = {"recipe": "ffa-add", "variant": "sloped+learning_rate=0.01", "validation": 1.0, "epoch": 1}


def plain_run():
    """A run of the recipe as it is, nothing set by hand."""
    return next(run for run in read_results("nottingham", RESULTS) if run.variant == "adam")


@pytest.fixture
def put(tmp_path):
    """A function that adds a run to a ledger of the test's own."""
    like = plain_run()

    def add(model, test, seed=0, **changes):
        ended = f"{model}{seed}{len(list(tmp_path.glob('*/*')))}"
        write_result(replace(like, model=model, test=test, seed=seed, **changes), tmp_path, ended)

    return add


def judge(folder, *others):
    return better("nottingham", "gru", others)(folder)


def test_three_seeds_beyond_their_spread_settle_a_claim(put, tmp_path):
    for seed, (mine, other) in enumerate([(3.0, 3.5), (3.1, 3.6), (3.2, 3.7)]):
        put("gru", mine, seed)
        put("lstm", other, seed)
    assert judge(tmp_path, "lstm").verdict == "holds"
    assert judge(tmp_path, "lstm").sentence == "gru 3.10 ± 0.10; lstm 3.60 ± 0.10 (full budget, 3 seeds, one rate)"
    assert better("nottingham", "lstm", ("gru",))(tmp_path).verdict == "fails"
    assert judge(tmp_path, "lstm", "tcn").verdict == "open"
    assert "not run: tcn" in judge(tmp_path, "lstm", "tcn").sentence


def test_a_lead_of_less_than_both_spreads_twice_is_called_narrow(put, tmp_path):
    for seed, (mine, near, far) in enumerate([(3.0, 3.3, 3.5), (3.1, 3.4, 3.6), (3.2, 3.5, 3.7)]):
        put("gru", mine, seed)
        put("lstm", near, seed)
        put("rnn", far, seed)
    assert judge(tmp_path, "lstm", "rnn") == Finding(
        "holds",
        "gru 3.10 ± 0.10; lstm 3.40 ± 0.10; rnn 3.60 ± 0.10 (full budget, 3 seeds, one rate): narrowly ahead of lstm",
    )
    behind = better("nottingham", "lstm", ("gru",))(tmp_path)
    assert behind.verdict == "fails" and behind.sentence.endswith("3 seeds, one rate): narrowly behind gru")
    assert better("nottingham", "rnn", ("gru", "lstm"))(tmp_path).sentence.endswith("one rate): behind gru")


def test_it_is_said_for_whom_rates_were_compared(put, tmp_path):
    put("gru", 3.0, chosen_from={"learning_rate=0.1": 3.1, "learning_rate=0.01": 3.0})
    put("lstm", 3.5)
    assert "1 seed, best of several rates for gru)" in judge(tmp_path, "lstm").sentence
    put("lstm", 3.5, chosen_from={"learning_rate=0.1": 3.6, "learning_rate=0.01": 3.5})
    assert "1 seed, best of several rates)" in judge(tmp_path, "lstm").sentence
    put("tcn", 3.5, validation=3.5)
    put("tcn", 3.4, validation=3.4, variant="adam+learning_rate=0.1")
    assert "1 seed, best of several rates)" in judge(tmp_path, "tcn").sentence


def test_rates_were_compared_too_where_the_recipes_own_won(put, tmp_path):
    put("gru", 3.0, validation=3.0)
    put("gru", 3.4, validation=3.4, variant="adam+learning_rate=0.1")
    put("gru", 2.0, validation=2.0, variant="adam+learning_rate=0.2", budget="2 of 15 epochs")  # another budget
    put("lstm", 3.5)
    put("lstm", 2.5, variant="adam+heads=0")  # another model
    said = "gru 3.00; lstm 3.50 (full budget, 1 seed, best of several rates for gru): leans for it"
    assert judge(tmp_path, "lstm").sentence == said


def test_a_row_may_have_a_variant_of_its_own(put, tmp_path):
    put("transformer-xl", 83.4, recipe="ptb-word", variant="paper-xl", metric="perplexity")
    put("r-transformer", 84.4, recipe="ptb-word", variant="paper", metric="perplexity")
    xl = ("ptb-word", "transformer-xl", ("r-transformer",))
    assert better(*xl)(tmp_path).sentence == "not run"
    own = better(*xl, own={"transformer-xl": "paper-xl"})(tmp_path)
    assert own.sentence.startswith("transformer-xl 83.40; r-transformer 84.40 (full budget")


@pytest.mark.parametrize(("others", "verdict"), [(3, "fails"), (2, "open")])
def test_one_that_is_ahead_by_three_seeds_refutes_a_lead_over_all(put, tmp_path, others, verdict):
    for seed in range(3):
        put("gru", 3.0 + 0.1 * seed, seed)
    for seed in range(others):
        put("lstm", 2.0 + 0.1 * seed, seed)
    put("rnn", 9.0)
    found = judge(tmp_path, "lstm", "rnn", "tcn")
    assert found.verdict == verdict
    assert ("(full budget, 1 to 3 seeds, one rate; not run: tcn): behind lstm" in found.sentence) == (
        verdict == "fails"
    )


def test_a_difference_within_the_spread_stays_open(put, tmp_path):
    for seed, (mine, other) in enumerate([(3.0, 3.3), (3.5, 3.6), (4.0, 3.9)]):
        put("gru", mine, seed)
        put("lstm", other, seed)
        put("rnn", other + 5.0, seed)
    found = judge(tmp_path, "lstm", "rnn")
    assert found.verdict == "open" and found.sentence.endswith("leans for it, within both spreads of lstm")
    turned = better("nottingham", "lstm", ("gru",))(tmp_path)
    assert turned.verdict == "open" and turned.sentence.endswith("leans against it, within both spreads of gru")


def test_one_seed_or_a_cut_budget_only_leans(put, tmp_path):
    assert judge(tmp_path, "lstm").sentence == "not run"
    put("gru", 3.0)
    put("lstm", 2.0)
    assert judge(tmp_path, "lstm").verdict == "open"
    assert judge(tmp_path, "lstm").sentence.endswith("(full budget, 1 seed, one rate): leans against it")


def test_of_two_variants_the_one_of_more_seeds_is_compared(put, tmp_path):
    for variant, test, seeds in (("adam", 5.0, 1), ("official", 3.0, 2)):
        for seed in range(seeds):
            put("gru", test, seed, variant=variant)
            put("lstm", test + 1, seed, variant=variant)
    assert judge(tmp_path, "lstm").sentence.startswith("gru 3.00 ± 0.00; lstm 4.00 ± 0.00 (full budget, 2 seeds,")


def test_what_a_claim_is_of_is_compared_also_where_the_others_share_a_shorter_budget(put, tmp_path):
    put("gru", 3.0)
    put("lstm", 3.5)
    for other in ("lstm", "tcn", "rnn"):
        put(other, 4.0, budget="5 of 15 epochs")
    found = judge(tmp_path, "lstm", "tcn", "rnn")
    assert found.sentence == "gru 3.00; lstm 3.50 (full budget, 1 seed, one rate; not run: tcn, rnn): leans for it"


def test_full_runs_are_compared_before_those_of_more_seeds_at_a_smaller_scale(put, tmp_path):
    for model, test in (("gru", 3.0), ("lstm", 4.0)):
        for seed in range(3):
            put(model, test + 1, seed, scale="cpu")
        put(model, test)
    assert judge(tmp_path, "lstm").sentence == "gru 3.00; lstm 4.00 (full budget, 1 seed, one rate): leans for it"


def test_of_runs_at_a_smaller_scale_those_to_their_end_are_compared(put, tmp_path):
    for model, test in (("gru", 3.0), ("lstm", 4.0)):
        put(model, test + 1, scale="cpu", budget="5 of 15 epochs")
        put(model, test, scale="cpu")
    assert judge(tmp_path, "lstm").sentence == "gru 3.00; lstm 4.00 (scale cpu, 1 seed, one rate): leans for it"


def test_models_made_equal_are_compared_among_themselves(put, tmp_path):
    put("gru", 3.0)
    put("lstm", 4.0)
    for model, test in (("gru", 5.0), ("lstm", 2.0)):
        put(model, test, variant="same-seconds+seconds=60", budget="60 of 3600 seconds")
    assert judge(tmp_path, "lstm").sentence == "gru 3.00; lstm 4.00 (full budget, 1 seed, one rate): leans for it"
    equal = better("nottingham", "gru", ["lstm"], "same-seconds")(tmp_path)
    said = "same-seconds+seconds=60, scale full, 60 of 3600 seconds, 1 seed, one rate"
    assert equal.sentence == f"gru 5.00; lstm 2.00 ({said}): leans against it"
    assert better("nottingham", "gru", ["lstm"], "same-parameters")(tmp_path).sentence == "not run"


def test_a_row_that_a_variant_leaves_as_it_is_stands_for_itself_there(put, tmp_path):
    put("r-transformer", 2.2)
    put("transformer", 3.5)
    put("transformer", 3.4, variant="same-parameters")
    found = better("nottingham", "r-transformer", ("transformer",), "same-parameters")(tmp_path)
    assert found.sentence.startswith("r-transformer 2.20; transformer 3.40 (same-parameters, full budget")
    put("gru", 3.0)  # which the variant makes wider
    assert better("nottingham", "gru", ("transformer",), "same-parameters")(tmp_path).sentence == "not run"


def test_where_seconds_are_the_budget_runs_of_one_machine_are_compared(put, tmp_path):
    """Validation is best on the first, whose one seed would else stand for the second's three."""
    equal = {"variant": "same-seconds+seconds=60", "budget": "60 of 3600 seconds"}
    put("gru", 3.0, hardware="one", validation=3.0, **equal)
    put("lstm", 2.0, hardware="one", validation=2.0, **equal)
    for seed in range(3):
        put("gru", 4.0 + seed / 10, seed, hardware="another", validation=4.0, **equal)
        put("lstm", 5.0 + seed / 10, seed, hardware="another", validation=5.0, **equal)
    found = better("nottingham", "gru", ("lstm",), "same-seconds")(tmp_path)
    assert found.sentence.startswith("gru 4.10 ± 0.10; lstm 5.10 ± 0.10 (") and found.sentence.endswith("leans for it")


def test_a_scale_has_sizes_of_its_own_and_nothing_is_equal_there(put, tmp_path):
    for row, variant in product(("gru", "lstm"), ("same-parameters", "same-flops", "same-seconds")):
        put(row, 3.0, variant=variant, scale="quick")
    for variant in ("same-parameters", "same-flops"):
        assert better("nottingham", "gru", ("lstm",), variant)(tmp_path).sentence == "not run"
    assert better("nottingham", "gru", ("lstm",), "same-seconds")(tmp_path).sentence != "not run"


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_settles_nothing(put, tmp_path, score):
    """A detail may be: a run is refused for its test score alone."""
    for seed in range(3):
        put("gru", 3.0, seed, details={"with cache": 3.0})
        put("lstm", 4.0, seed, details={"with cache": score if seed == 1 else 4.0})
    found = better("nottingham", "gru", ("lstm",), detail="with cache")(tmp_path)
    assert found.verdict == "open" and f"lstm {score} ± nan" in found.sentence
    lost = better("nottingham", "lstm", ("gru",), detail="with cache")(tmp_path)
    assert lost.verdict == "open" and lost.sentence.endswith("leans against it")


def test_who_is_level_does_not_lead(put, tmp_path):
    for recipe in ("nottingham", "mnist"):  # where the lower wins, and the higher
        put("gru", 90.0, recipe=recipe)
        put("lstm", 90.0, recipe=recipe)
        assert better(recipe, "gru", ("lstm",))(tmp_path).sentence.endswith("leans against it")


def test_runs_of_different_budgets_are_not_compared(put, tmp_path):
    put("gru", 3.0)
    put("lstm", 2.0, scale="quick")
    put("gru", 5.0, scale="quick")
    assert judge(tmp_path, "lstm").sentence.startswith("gru 5.00; lstm 2.00 (scale quick, 1 seed, one rate)")


def test_of_several_rates_the_one_that_validated_best_is_compared(put, tmp_path):
    put("gru", 3.0)
    put("lstm", 2.5, validation=2.9, variant="adam+learning_rate=0.1")  # luckier, but validation did not choose it
    put("lstm", 2.8, validation=2.7, variant="adam+learning_rate=0.2")
    put("lstm", 2.6, validation=2.8, variant="adam+learning_rate=0.3")
    assert judge(tmp_path, "lstm").sentence.startswith("gru 3.00; lstm 2.80 (")


@pytest.mark.parametrize(
    "change", ["d_model=999", "limit=87", "dropout=0", "optimizer=sgd", "learning_rate=0.1+window=12"]
)
def test_a_model_that_was_changed_does_not_stand_for_its_row(put, tmp_path, change):
    put("gru", 3.0)
    put("lstm", 4.0)
    put("lstm", 1.0, validation=0.1, variant=f"adam+{change}")
    assert judge(tmp_path, "lstm").sentence.startswith("gru 3.00; lstm 4.00 (")


def test_a_model_that_was_trained_for_longer_is_still_its_row(put, tmp_path):
    put("gru", 3.0)
    put("lstm", 4.0, variant="adam+epochs=30")
    assert judge(tmp_path, "lstm").sentence.startswith("gru 3.00; lstm 4.00 (full budget")


def test_a_part_is_needed_if_three_seeds_without_it_are_worse(put, tmp_path):
    def found(*changes):
        return needs("nottingham", "r-transformer", *changes)(tmp_path)

    for seed in range(3):
        put("r-transformer", 2.2 + seed / 10, seed)
        put("r-transformer", 1.0, seed, variant="adam+window=12")
    assert found("heads=0").sentence == "not run"
    put("r-transformer", 3.5, variant="adam+heads=0")
    put("r-transformer", 3.6, 1, variant="adam+heads=0", budget="1 of 15 epochs")
    said = "r-transformer 2.30 ± 0.10; heads=0 3.50 (full budget, 1 to 3 seeds, one rate"
    assert (found("heads=0").verdict, found("heads=0").sentence) == ("open", f"{said}): leans for it")
    assert found("heads=0", "window=2").sentence == f"{said}; not run: window=2): leans for it"
    for seed in (1, 2):
        put("r-transformer", 3.5, seed, variant="adam+heads=0")
    assert found("heads=0").verdict == "holds"
    assert found("window=12").verdict == "fails"


def test_a_part_is_judged_by_full_runs_also_where_quick_ones_have_their_name(put, tmp_path):
    for seed in range(3):
        put("r-transformer", 2.2, seed)
        put("r-transformer", 3.5, seed, variant="adam+heads=0")
        put("r-transformer", 9.0, seed, scale="quick")
        put("r-transformer", 1.0, seed, variant="adam+heads=0", scale="quick")
    assert needs("nottingham", "r-transformer", "heads=0")(tmp_path).verdict == "holds"


def test_of_two_rates_one_with_a_lucky_seed_alone_does_not_stand_for_the_row(put, tmp_path):
    for seed, validation in enumerate((2.9, 3.1, 3.1)):
        put("gru", 3.0, seed, validation=validation)
        put("lstm", 4.0, seed)
    put("gru", 5.0, 0, validation=3.0, variant="adam+learning_rate=0.01")  # better than the others' mean
    assert judge(tmp_path, "lstm").sentence.startswith("gru 3.00 ± 0.00; lstm 4.00 ± 0.00")


@pytest.mark.parametrize(("told", "verdict"), [(8.0, "fails"), (8.28, "holds"), (8.9, "holds")])
def test_what_is_not_needed_is_needed_if_it_helps_by_more_than_the_spreads(put, tmp_path, told, verdict):
    judge = no_worse("ablations", "window-6", "sinusoids")
    assert judge(tmp_path).sentence == "not run"
    for seed in range(3):
        put("window-6", 8.3 + seed / 50, seed, recipe="ablations")
        put("sinusoids", told + seed / 50, seed, recipe="ablations")
        assert judge(tmp_path).verdict == (verdict if seed == 2 else "open")


@pytest.mark.parametrize(("mine", "others", "verdict"), [(3, 3, "fails"), (2, 3, "open"), (3, 2, "open")])
def test_a_need_is_settled_by_three_seeds_of_both(put, tmp_path, mine, others, verdict):
    for row, test, seeds in (("window-6", 8.3, mine), ("sinusoids", 8.0, others)):
        for seed in range(seeds):
            put(row, test + seed / 50, seed, recipe="ablations")
    assert no_worse("ablations", "window-6", "sinusoids")(tmp_path).verdict == verdict


def test_of_several_things_none_is_needed(put, tmp_path):
    judge = no_worse("ablations", "window-6", "sinusoids", "window-12")
    for seed in range(3):
        put("window-6", 8.3 + seed / 50, seed, recipe="ablations")
        put("sinusoids", 8.28 + seed / 50, seed, recipe="ablations")
    said = (
        "window-6 8.32 ± 0.02; sinusoids 8.30 ± 0.02 (full budget, 3 seeds, one rate; not run: window-12): leans for it"
    )
    assert judge(tmp_path) == Finding("open", said)
    put("window-12", 8.0, 0, recipe="ablations")  # ahead, by one seed
    assert judge(tmp_path).verdict == "open" and judge(tmp_path).sentence.endswith("leans against it")
    for seed in (1, 2):
        put("window-12", 8.0, seed, recipe="ablations")
    assert judge(tmp_path).verdict == "fails"
    for seed in range(3):
        put("window-12", 8.4, seed, recipe="ablations")  # the newest of a seed counts
    assert judge(tmp_path).verdict == "holds"


def test_where_higher_is_better_the_higher_wins(put, tmp_path):
    for seed in range(3):
        put("gru", 90.0 + seed / 10, seed, recipe="mnist")
        put("lstm", 80.0 + seed / 10, seed, recipe="mnist")
    assert better("mnist", "gru", ("lstm",))(tmp_path).verdict == "holds"


def test_translations_are_judged_by_bleu_although_validation_chose_by_perplexity(put, tmp_path):
    put("mc-rnn-3", 24.0, recipe="multi30k")
    put("baseline", 25.0, recipe="multi30k")
    assert better("multi30k", "mc-rnn-3", ("baseline",))(tmp_path).sentence.endswith("leans against it")


def test_a_translators_rate_is_chosen_by_perplexity_and_its_row_judged_by_bleu(put, tmp_path):
    own = load_recipe("multi30k").default_variant
    for seed in range(3):
        for row, change, bleu, perplexity in (
            ("baseline", "", 30.0, 5.0), ("baseline", "+learning_rate=1", 20.0, 9.0),
            ("baseline", "+layers=1", 22.0, 4.0), ("baseline-large", "", 25.0, 6.0),
        ):  # fmt: skip
            put(row, bleu + seed / 10, seed, recipe="multi30k", variant=own + change, validation=perplexity)
    for judge in (
        better("multi30k", "baseline", ["baseline-large"]),
        no_worse("multi30k", "baseline", "baseline-large"),
        needs("multi30k", "baseline", "layers=1"),
    ):
        found = judge(tmp_path)
        assert found.verdict == "holds" and found.sentence.startswith("baseline 30.10 ± 0.10; ")


def test_a_solved_toy_problem_names_its_epochs_and_the_papers(put, tmp_path):
    assert solves("ffa-add", "mean-50")(tmp_path).sentence == "not run"
    for seed in range(3):
        put("mean-50", 0.998, seed, **SOLVED)
    found = solves("ffa-add", "mean-50")(tmp_path)
    how = "sloped+learning_rate=0.01, no rates compared; 3 seeds"
    assert (found.verdict, found.sentence) == ("holds", f"epoch 1, 1, 1 (paper: 1); test 0.998 solved ({how})")


def test_one_unsolved_sequence_in_a_thousand_leaves_a_toy_problem_unsolved(put, tmp_path):
    put("mean-50", 0.999, **SOLVED | {"validation": 0.999})
    assert solves("ffa-add", "mean-50")(tmp_path).sentence.startswith("epoch none (paper: 1)")
    put("mean-50", 1.0, **SOLVED | {"validation": 0.999})  # the paper looks at the test
    assert solves("ffa-add", "mean-50")(tmp_path).sentence.startswith("epoch 1 (paper: 1)")


def test_a_toy_problem_is_solved_at_full_scale_or_not_at_all(put, tmp_path):
    for seed in range(3):
        put("mean-50", 1.0, seed, **SOLVED, scale="cpu")
    assert solves("ffa-add", "mean-50")(tmp_path) == Finding("open", "not run")


def test_of_rates_that_solve_it_the_soonest_counts(put, tmp_path):
    for rate, epoch in ((0.003, 3), (0.01, 1), (0.03, 2)):
        put("mean-50", 1.0, **SOLVED | {"variant": f"sloped+learning_rate={rate}", "epoch": epoch})
    assert solves("ffa-add", "mean-50")(tmp_path).sentence.startswith("epoch 1 (paper: 1)")


def test_of_rates_that_were_not_compared_the_one_with_most_seeds_counts_and_then_validation(put, tmp_path):
    """The first rate solves it soonest, but by one seed; of two with as many, the one that validated best."""
    for rate, seeds, validation, epoch in ((0.01, 1, 1.0, 1), (0.003, 2, 0.5, 2), (0.001, 2, 0.9, 4)):
        for seed in range(seeds):
            made = {"variant": f"sloped+learning_rate={rate}", "validation": validation, "epoch": epoch}
            put("mean-50", 1.0, seed, **SOLVED | made)
    assert solves("ffa-add", "mean-50")(tmp_path).sentence.startswith("epoch 4, 4 (paper: 1)")


@pytest.mark.parametrize(("late", "compared", "verdict"), [
    (3, 3, "fails"), (3, 2, "open"), (3, 0, "open"), (1, 3, "open"), (0, 0, "holds"),
])  # fmt: skip
@pytest.mark.parametrize("change", [{"epoch": 2}, {"validation": 0.6}])
def test_it_fails_if_every_seed_is_late_by_the_best_of_its_own_rates(put, tmp_path, change, late, compared, verdict):
    chosen = {f"learning_rate={rate}": 0.5 for rate in range(4)}
    for seed in range(3):
        tried = {"chosen_from": chosen} if seed < compared else {}
        put("mean-50", 0.998, seed, **SOLVED | tried | (change if seed < late else {}))
    found = solves("ffa-add", "mean-50")(tmp_path)
    assert found.verdict == verdict
    assert found.sentence.endswith(": leans both ways") == (late == 1)


@pytest.mark.parametrize(("budgets", "verdict"), [
    (["2 of 100 epochs", "8 of 100 epochs", None], "fails"),
    (["2 of 100 epochs", "1 of 100 epochs", None], "open"),
    (["2 of 100 epochs, 50000 sequences", None, None], "open"),
])  # fmt: skip
def test_who_has_not_solved_it_after_as_many_epochs_as_the_paper_is_late(put, tmp_path, budgets, verdict):
    chosen = {f"learning_rate={rate}": 0.5 for rate in range(4)}
    for seed, budget in enumerate(budgets):
        unsolved = {"variant": "sloped", "epoch": 1, "validation": 0.6, "budget": budget, "chosen_from": chosen}
        put("mean-1000", 0.6, seed, **SOLVED | unsolved)
    found = solves("ffa-add", "mean-1000")(tmp_path)
    assert found.verdict == verdict and found.sentence.startswith("epoch none (paper: 2); test 0.600 solved")


@pytest.mark.parametrize(("budgets", "said"), [
    (["1 of 100 epochs"], "1 seed, 1 of 100 epochs): more training may tell"),
    (["2 of 100 epochs"], "1 seed, 2 of 100 epochs): leans against it"),
    (["1 of 100 epochs"] * 3, "3 seeds, 1 of 100 epochs): more training may tell"),
    ([None, "1 of 100 epochs", None], "3 seeds, 1 cut at 1 of 100 epochs): leans against it"),
])  # fmt: skip
def test_what_was_cut_before_the_papers_epochs_leans_no_way(put, tmp_path, budgets, said):
    swept = {"variant": "sloped", "validation": 0.998, "chosen_from": {"learning_rate=0.001": 0.998}}
    for seed, budget in enumerate(budgets):
        put("mean-1000", 0.998, seed, **SOLVED | swept | {"budget": budget})
    found = solves("ffa-add", "mean-1000")(tmp_path)
    assert found.verdict == "open" and found.sentence.endswith(said)


def test_where_each_seed_compared_the_rates_each_is_judged_by_its_own(put, tmp_path):
    """The paper's number is the best of four rates; the same rate need not be best for every seed."""
    for seed, (rate, epoch) in enumerate([(0.01, 1), (0.003, 1), (0.01, 1)]):
        chosen = {f"learning_rate={one}": 1.0 for one in (0.003, 0.01)}
        put("mean-50", 1.0, seed, **SOLVED | {"variant": f"sloped+learning_rate={rate}", "epoch": epoch})
        judge = solves("ffa-add", "mean-50")
        more = {"variant": f"sloped+learning_rate={rate}", "epoch": epoch, "chosen_from": chosen}
        put("mean-50", 1.0, seed, **SOLVED | more)
    put("mean-50", 1.0, 1, **SOLVED | {"variant": "sloped+learning_rate=0.01", "epoch": 2})  # not chosen
    found = judge(tmp_path)
    assert found.verdict == "holds" and found.sentence.endswith("the best of 2 by each seed; 3 seeds)")
    more = {"variant": "sloped+learning_rate=0.003", "epoch": 2, "chosen_from": chosen}
    put("mean-50", 1.0, 1, **SOLVED | more)
    assert judge(tmp_path).verdict == "open" and judge(tmp_path).sentence.startswith("epoch 1, 2, 1 (paper: 1)")


def test_one_seed_that_compared_rates_does_not_stand_for_three_that_did_not(put, tmp_path):
    for seed in range(3):
        put("mean-50", 1.0, seed, **SOLVED)
    late = {"variant": "sloped+learning_rate=0.003", "epoch": 9, "chosen_from": {"learning_rate=0.003": 1.0}}
    put("mean-50", 1.0, 0, **SOLVED | late)
    found = solves("ffa-add", "mean-50")(tmp_path)
    assert found.verdict == "holds" and found.sentence.startswith("epoch 1, 1, 1 (paper: 1)")


def test_a_variant_is_judged_by_its_own_runs(put, tmp_path):
    put("mean-50", 0.998, 0, **SOLVED)
    put("mean-50", 0.998, 0, **SOLVED | {"variant": "official", "epoch": 7})
    assert solves("ffa-add", "mean-50")(tmp_path).sentence.startswith("epoch 1 (paper: 1)")
    assert solves("ffa-add", "mean-50", "official")(tmp_path).sentence.startswith("epoch 7 (paper: 1)")
    assert solves("ffa-add", "mean-50", "paper")(tmp_path).sentence == "not run"


TWO_RATES = {"variant": "sloped", "chosen_from": {"learning_rate=0.001": 1.0, "learning_rate=0.01": 1.0}}


@pytest.mark.parametrize(("attention", "mean", "verdict"), [
    ((1, 2, 1), (3, 4, 3), "holds"), ((1, 3, 1), (3, 4, 3), "open"), ((3, 3, 3), (3, 1, 3), "fails"),
    ((3, 3, 3), (2, 4, 2), "open"), ((1, 2), (3, 4, 3), "open"), ((1, 2, 1), (3, 4), "open"),
])  # fmt: skip
def test_the_one_is_sooner_if_each_of_its_runs_is_before_each_of_the_other(put, tmp_path, attention, mean, verdict):
    judge = sooner("ffa-add", "attention-50", "mean-50")
    assert judge(tmp_path) == Finding("open", "not run")
    for row, epochs in (("attention-50", attention), ("mean-50", mean)):
        for seed, epoch in enumerate(epochs):
            put(row, 1.0, seed, **SOLVED | TWO_RATES | {"epoch": epoch})
    found = judge(tmp_path)
    said = f"attention-50 epoch {str(attention)[1:-1]}; mean-50 epoch {str(mean)[1:-1]} ("
    assert found.verdict == verdict and found.sentence.startswith(said)


@pytest.mark.parametrize(("budget", "verdict", "ending"), [
    (None, "holds", "(3 seeds)"),  # never, in all its epochs
    ("2 of 100 epochs", "holds", "(3 seeds, 3 cut at 2 of 100 epochs)"),  # in its third at the soonest
    ("1 of 100 epochs", "open", ": more training may tell"),  # in its second, perhaps
    ("2 of 100 epochs, 50000 sequences", "open", ": more training may tell"),
    ("60 of 3600 seconds", "open", ": more training may tell"),
])  # fmt: skip
def test_who_was_cut_may_have_solved_it_in_the_next_epoch(put, tmp_path, budget, verdict, ending):
    for seed in range(3):
        put("attention-50", 1.0, seed, **SOLVED | TWO_RATES | {"epoch": 2})
        put("mean-50", 0.6, seed, **SOLVED | TWO_RATES | {"epoch": 1, "validation": 0.6, "budget": budget})
    found = sooner("ffa-add", "attention-50", "mean-50")(tmp_path)
    assert found.verdict == verdict and found.sentence.endswith(ending)


@pytest.mark.parametrize("late", ["attention-50", "mean-50"])
def test_who_is_behind_by_one_rate_alone_may_be_sooner_by_another(put, tmp_path, late):
    for row in ("attention-50", "mean-50"):
        for seed in range(3):
            tried = {} if row == late else TWO_RATES
            put(row, 1.0, seed, **SOLVED | tried | {"epoch": 5 if row == late else 2})
    assert sooner("ffa-add", "attention-50", "mean-50")(tmp_path).verdict == "open"
    for seed in range(3):
        put(late, 1.0, seed, **SOLVED | TWO_RATES | {"epoch": 5})
    verdict = "holds" if late == "mean-50" else "fails"
    assert sooner("ffa-add", "attention-50", "mean-50")(tmp_path).verdict == verdict


def test_by_one_rate_it_may_hold_where_each_seeds_best_was_cut_too_soon(put, tmp_path):
    """No run of the best rate takes longer than one of any other."""
    in_time, ahead = solves("ffa-add", "attention-5000"), sooner("ffa-add", "attention-5000", "mean-5000")
    cut = {"epoch": 1, "validation": 0.6, "budget": "1 of 100 epochs"}
    for seed in range(3):
        put("attention-5000", 0.6, seed, **SOLVED | TWO_RATES | cut)
        put("mean-5000", 0.6, seed, **SOLVED | TWO_RATES | cut | {"budget": "2 of 100 epochs"})
    for seed in range(2):
        put("attention-5000", 1.0, seed, **SOLVED | {"epoch": 2})
    assert (in_time(tmp_path).verdict, ahead(tmp_path).verdict) == ("open", "open")
    put("attention-5000", 1.0, 2, **SOLVED | {"epoch": 2})
    how = "sloped+learning_rate=0.01, no rates compared; 3 seeds"
    assert in_time(tmp_path) == Finding("holds", f"epoch 2, 2, 2 (paper: 2); test 1.000 solved ({how})")
    said = "attention-5000 epoch 2, 2, 2; mean-5000 epoch none, none, none (3 seeds, 3 cut at 2 of 100 epochs)"
    assert ahead(tmp_path) == Finding("holds", said)


def test_of_a_rate_the_longest_run_of_each_seed_counts(put, tmp_path):
    """Two seeds cut late, one that ended: they share no budget, and each says more than its own cut at one epoch."""
    short = {"epoch": 1, "validation": 0.6, "budget": "1 of 100 epochs"}
    judge = solves("ffa-add", "mean-1000")
    for seed, tried in enumerate([TWO_RATES, TWO_RATES, TWO_RATES]):
        put("mean-1000", 0.6, seed, **SOLVED | tried | short)
    assert judge(tmp_path).sentence.endswith("1 of 100 epochs): more training may tell")
    for seed, budget in enumerate(["40 of 100 epochs", "40 of 100 epochs", None]):
        put("mean-1000", 0.6, seed, **SOLVED | short)
        put("mean-1000", 1.0, seed, **SOLVED | {"epoch": 2 + seed, "validation": 0.999, "budget": budget})
    found = judge(tmp_path)
    assert found.verdict == "open" and found.sentence.startswith("epoch 2, 3, 4 (paper: 2)")
    assert found.sentence.endswith("no rates compared; 3 seeds, 2 cut at 40 of 100 epochs): leans both ways")


def test_zeros_that_count_make_runs_of_their_own(put, tmp_path):
    put("attention-50", 1.0, 0, **SOLVED | {"variant": "padded"})
    put("mean-50", 1.0, 0, **SOLVED | {"variant": "padded", "epoch": 3})
    assert sooner("ffa-add", "attention-50", "mean-50")(tmp_path).sentence == "not run"
    said = "attention-50 epoch 1; mean-50 epoch 3 (1 seed): leans for it"
    assert sooner("ffa-add", "attention-50", "mean-50", "padded")(tmp_path).sentence == said


@pytest.mark.parametrize(("scores", "sense", "verdict"), [
    ((74, 75, 73), "<=", "holds"), ((76, 76, 77), "<=", "fails"), ((74, 76, 73), "<=", "open"),
    ((75, 76, 77), ">=", "holds"), ((73, 72, 74), ">=", "fails"), ((75, 76, 74), ">=", "open"),
    ((74, 75), "<=", "open"),
])  # fmt: skip
def test_a_bound_holds_if_no_seed_breaks_it_and_fails_if_every_seed_does(put, tmp_path, scores, sense, verdict):
    bounded = within("ffa-order", "attention", 75.0, sense)
    assert bounded(tmp_path).sentence == "not run"
    for seed, score in enumerate(scores):
        put("attention", score, seed, recipe="ffa-order")
    assert bounded(tmp_path).verdict == verdict


def test_a_bound_is_settled_by_the_recipes_own_variant(put, tmp_path):
    """Of products the mean of the variant "padded" is another: it counts the zeros behind a sequence."""
    bounded = within("ffa-multiply", "mean-5000", 0.898, "<=")
    for seed in range(3):
        put("mean-5000", 0.95, seed, recipe="ffa-multiply", variant="padded")
    assert bounded(tmp_path).verdict == "open" and bounded(tmp_path).sentence.endswith("leans against it")
    assert bounded(tmp_path).sentence.startswith("mean-5000 of the variant “padded” 0.950")
    for seed in range(3):
        put("mean-5000", 0.85, seed, recipe="ffa-multiply", variant="sloped+learning_rate=0.01")
        assert bounded(tmp_path).sentence.startswith("mean-5000 0.850")
    assert bounded(tmp_path).verdict == "holds"


def test_a_cut_run_of_the_recipes_variant_is_held_to_the_bound_before_a_full_one_of_another(put, tmp_path):
    put("mean-5000", 0.95, recipe="ffa-multiply", variant="padded")
    put("mean-5000", 0.85, recipe="ffa-multiply", variant="sloped", budget="5 of 100 epochs")
    assert within("ffa-multiply", "mean-5000", 0.898, "<=")(tmp_path).sentence.startswith("mean-5000 0.850, ")


def test_of_two_cut_runs_the_one_that_validated_best_is_held_to_the_bound(put, tmp_path):
    for rate, score in ((0.01, 62.0), (0.003, 74.0), (0.001, 71.0)):
        more = {"variant": f"adam+learning_rate={rate}", "validation": score, "budget": "5 of 100 epochs"}
        put("attention", score - 1, recipe="ffa-order", **more)
    found = within("ffa-order", "attention", 75.0, "<=")(tmp_path)
    assert found.sentence.startswith("attention 73.000, the bound 75 ")


def test_where_lower_is_better_the_lowest_validation_is_held_to_the_bound(put, tmp_path):
    for rate, score in ((0.01, 3.0), (0.003, 2.0), (0.001, 4.0)):
        put("gru", score, variant=f"adam+learning_rate={rate}", validation=score)
    assert within("nottingham", "gru", 3.5, "<=")(tmp_path).sentence.startswith("gru 2.000, the bound 3.5 ")


def test_a_full_run_is_held_to_the_bound_before_more_seeds_of_shorter_ones(put, tmp_path):
    put("attention", 70.0, recipe="ffa-order")
    for seed in range(3):
        put("attention", 90.0, seed, recipe="ffa-order", scale="cpu")
    found = within("ffa-order", "attention", 75.0, "<=")(tmp_path)
    assert found.sentence.startswith("attention 70.000, the bound 75 (full budget, 1 seed)")


def test_the_order_tasks_bound_is_counted_on_the_split_that_is_tested(put, tmp_path):
    targets = [int(one.target) for one in task_by_name("temporal-order", size=7).examples("test")]
    xy, yx = (targets.count(CLASSES.index(name)) for name in ("XY", "YX"))
    assert order_blind() == pytest.approx((1000 - min(xy, yx)) / 10)


def test_a_detail_is_compared_instead_of_the_test_score(put, tmp_path):
    for seed in range(3):
        put("gru", 9.0, seed, details={"with cache": 3.0 + seed / 100})
        put("lstm", 4.0, seed, details={"with cache": 3.5 + seed / 100})
        put("rnn", 1.0, seed)
    found = better("nottingham", "gru", ("lstm", "rnn"), detail="with cache")(tmp_path)
    assert (found.verdict, found.sentence) == (
        "open", "gru 3.01 ± 0.01; lstm 3.51 ± 0.01 (full budget, 3 seeds, one rate; not run: rnn): leans for it"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("score", "seeds", "margin", "verdict", "end"),
    [
        (2.0, 3, 0.5, "holds", "one rate)"),
        (2.0, 3, 0.97, "holds", "narrowly ahead of lstm"),  # the spreads are .01 each
        (2.0, 3, 0.99, "open", "leans for it"),
        (2.0, 3, 1.01, "open", "leans against it"),
        (2.0, 3, 1.5, "fails", "not 1.5 ahead of lstm"),
        (2.0, 1, 0.5, "open", "leans for it"),
        (2.0, 1, 1.5, "open", "leans against it"),
        (3.5, 3, 0.5, "fails", "not 0.5 ahead of lstm"),
    ],
)
def test_a_margin_that_a_claim_names_is_asked_for(put, tmp_path, score, seeds, margin, verdict, end):
    for seed in range(seeds):
        put("gru", score + seed / 100, seed)
        put("lstm", 3.0 + seed / 100, seed)
    found = better("nottingham", "gru", ("lstm",), margin=margin)(tmp_path)
    assert found.verdict == verdict and found.sentence.endswith(end), found


@pytest.mark.parametrize(("sense", "score", "lean"), [
    ("<=", 80, "leans against it"), (">=", 80, "leans for it"),
    ("<=", 70, "more training may lead above it, or not"), (">=", 70, "more training may lead above it, or not"),
])  # fmt: skip
def test_a_bound_under_a_cut_budget_only_leans_and_only_from_above(put, tmp_path, sense, score, lean):
    for seed in range(3):
        put("attention", score, seed, recipe="ffa-order", budget="2 of 100 epochs")
    found = within("ffa-order", "attention", 75.0, sense)(tmp_path)
    assert (found.verdict, found.sentence.split(": ")[-1]) == ("open", lean)


@pytest.mark.parametrize(("over", "verdict"), [(0.0, "holds"), (1.0, "fails")])
def test_arithmetic_settles_a_bound_alone(tmp_path, over, verdict):
    found = breaks(lambda: Evidence({"l = 1": -1.0, "l = 2": over}, "steps more", "."))(tmp_path)
    assert (found.verdict, found.sentence) == (verdict, f"steps more, at l = 2: {over:g}")


def test_the_cost_of_channels_is_what_the_benchmark_measured(tmp_path):
    found = as_fast("mc-rnn", "rtx / nn.LSTM")(RESULTS)
    assert found.verdict == "open" and "times the time where nothing runs beside" in found.sentence
    assert as_fast("mc-rnn", "rtx / nn.LSTM")(tmp_path).sentence == "not measured"


def test_the_papers_own_numbers_bear_out_what_they_claim(monkeypatch, tmp_path):
    """A ledger of what the papers print, three times each: whatever is judged by it must hold."""
    like = plain_run()

    def printed(recipe, _):
        loaded = load_recipe(recipe)
        for row, variant, seed in product(loaded.models, loaded.variants, range(3)):
            score, epoch = loaded.paper(row), loaded.paper_epochs(row) or 1
            if score is not None and not variant.startswith("same-"):
                made = {"model": row, "variant": variant, "seed": seed, "epoch": epoch}
                made["chosen_from"] = {"learning_rate=0.01": score}  # the papers' best of several rates
                yield replace(like, recipe=recipe, validation=score, test=score, **made)

    monkeypatch.setattr("rtx.evidence.tables.read_results", printed)
    papers = ("R-Transformer", "MC-RNN", "Feed-forward attention")
    found = {claim: finding for claim, finding in judged(tmp_path) if claim.source.startswith(papers)}
    unprinted = [claim for claim, finding in found.items() if finding.sentence in ("not run", "not measured")]
    assert [found[claim] for claim in found if found[claim].verdict != "holds" and claim not in unprinted] == []
    assert not any("Table" in claim.source for claim in unprinted) and len(found) - len(unprinted) > 40


def test_every_claim_can_be_judged_by_the_ledger_as_it_is_and_by_none(tmp_path):
    assert [claim for claim, _ in judged(RESULTS)] == list(CLAIMS)
    without = {finding.sentence for _, finding in judged(tmp_path)}
    assert without == {
        "not run",
        "not measured",
        "steps more than the bound, at l = 1: 0",
        "steps more than the bound, at l = 2: 1",
    }
