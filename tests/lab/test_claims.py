"""Claims are judged by the ledger: by means and spreads of what was run under one budget, and by nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtx.lab.claims import CLAIMS, better, judged, solves
from rtx.training.ledger import read_results, write_result

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def put(tmp_path):
    """A function that adds a run to a ledger of the test's own."""
    like = next(iter(read_results("nottingham", RESULTS)))

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
    assert judge(tmp_path, "lstm").sentence == "gru 3.10 ± 0.10; lstm 3.60 ± 0.10 (full budget, 3 seeds)"
    assert better("nottingham", "lstm", ("gru",))(tmp_path).verdict == "fails"
    assert judge(tmp_path, "lstm", "tcn").verdict == "open"
    assert "not run: tcn" in judge(tmp_path, "lstm", "tcn").sentence


def test_a_difference_within_the_spread_stays_open(put, tmp_path):
    for seed, (mine, other) in enumerate([(3.0, 3.3), (3.5, 3.6), (4.0, 3.9)]):
        put("gru", mine, seed)
        put("lstm", other, seed)
    assert judge(tmp_path, "lstm").verdict == "open"
    assert judge(tmp_path, "lstm").sentence.endswith("leans for it")


def test_one_seed_or_a_cut_budget_only_leans(put, tmp_path):
    assert judge(tmp_path, "lstm").sentence == "not run"
    put("gru", 3.0)
    put("lstm", 2.0)
    assert judge(tmp_path, "lstm").verdict == "open"
    assert judge(tmp_path, "lstm").sentence.endswith("(full budget, 1 seed): leans against it")


def test_runs_of_different_budgets_are_not_compared(put, tmp_path):
    put("gru", 3.0)
    put("lstm", 2.0, scale="quick")
    put("gru", 5.0, scale="quick")
    assert judge(tmp_path, "lstm").sentence.startswith("gru 5.00; lstm 2.00 (scale quick, 1 seed)")


def test_where_higher_is_better_the_higher_wins(put, tmp_path):
    for seed in range(3):
        put("gru", 90.0 + seed / 10, seed, recipe="mnist")
        put("lstm", 80.0 + seed / 10, seed, recipe="mnist")
    assert better("mnist", "gru", ("lstm",))(tmp_path).verdict == "holds"


def test_translations_are_judged_by_bleu_although_validation_chose_by_perplexity(put, tmp_path):
    put("mc-rnn-3", 24.0, recipe="multi30k")
    put("baseline", 25.0, recipe="multi30k")
    assert better("multi30k", "mc-rnn-3", ("baseline",))(tmp_path).sentence.endswith("leans against it")


def test_a_solved_toy_problem_names_its_epochs_and_the_papers(put, tmp_path):
    assert solves("ffa-add", "mean-50")(tmp_path).sentence == "not run"
    for seed in range(3):
        put("mean-50", 0.998, seed, recipe="ffa-add", validation=1.0, epoch=1)
    found = solves("ffa-add", "mean-50")(tmp_path)
    assert (found.verdict, found.sentence) == ("holds", "epoch 1, 1, 1 (paper: 1); test 0.998 solved")


@pytest.mark.parametrize("change", [{"epoch": 2}, {"validation": 0.6}])
def test_one_seed_that_is_late_or_never_solves_it_is_enough_to_fail(put, tmp_path, change):
    for seed in range(3):
        put("mean-50", 0.998, seed, **{"recipe": "ffa-add", "validation": 1.0, "epoch": 1} | (change if seed else {}))
    assert solves("ffa-add", "mean-50")(tmp_path).verdict == "fails"


def test_every_claim_can_be_judged_by_the_ledger_as_it_is_and_by_none(tmp_path):
    assert [claim for claim, _ in judged(RESULTS)] == list(CLAIMS)
    assert {finding.sentence for _, finding in judged(tmp_path)} == {"not run"}
