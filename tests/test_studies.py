"""The studies: what they count and measure, and their stored results."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

import rtx
from rtx import build
from rtx.evidence.ledger import read_results
from rtx.nn.ops import OPERATIONS
from rtx.tasks import task_by_name
from rtx.tasks.task import Example
from rtx.training.checkpoint import save_checkpoint
from studies import (
    equal_copies,
    music_controls,
    original_code,
    sgd_rates,
    start_of_a_memory,
    where_time_goes,
    which_past,
    word_curves,
)
from studies.nottingham_repeats import CORPORA, KINDS, STORED, WINDOW, count_kinds, kinds, main, means, nll_by_kind

ROOT = Path(__file__).parents[1]
REPEATS = json.loads(STORED.read_text(encoding="utf-8"))
SHORT = {"n": "new", "s": "as before", "o": "otherwise", "b": "beginning"}


def tune(letters: str) -> Example:
    """Return a frame for each letter except the last; the target is the next letter."""
    notes = torch.eye(26)[[ord(letter) - ord("a") for letter in letters]]
    return Example(notes[:-1], notes[1:])


@pytest.mark.parametrize(
    ("letters", "window", "expected"),
    [
        ("abcabcabd", 1, "nnnsssso"),  # after the last b comes d, not c
        ("abcabcabd", 3, "bbnnnsso"),
        ("abcabdabc", 2, "bnnnonno"),  # what followed the last time counts
        ("aaaa", 2, "bns"),
        ("abcd", 9, "bbb"),
    ],
)
def test_a_passage_continues_as_before_if_the_same_follows_as_the_last_time(letters, window, expected):
    one = tune(letters)
    assert [KINDS[kind] for kind in kinds(one.inputs, one.target, window)] == [SHORT[short] for short in expected]


class Copy(nn.Module):
    """Is sure that a letter is followed by what followed it the last time; gives equal odds after a new letter."""

    def forward(self, frames, lengths):
        logits, last = torch.zeros_like(frames), {}
        letters = frames[0].argmax(-1).tolist()
        for t, letter in enumerate(letters):
            if t:
                last[letters[t - 1]] = frames[0, t]
            if letter in last:
                logits[0, t] = 40 * last[letter] - 20
        return logits


def test_a_model_that_copies_loses_nothing_on_frames_as_before_and_most_on_others():
    tunes = [tune("abcabcabd"), tune("abab")]
    assert count_kinds(tunes, 1) == {"new": 5, "as before": 5, "otherwise": 1, "beginning": 0}
    nll = nll_by_kind(Copy(), tunes, 1)
    assert nll["new"] == pytest.approx(26 * math.log(2))
    assert nll["as before"] < 1e-5 and nll["otherwise"] == pytest.approx(40)
    assert math.isnan(nll["beginning"])


def test_the_stored_means_are_of_runs_that_add_up_to_the_ledgers_scores():
    frames = REPEATS["conditions"]["frames"]["nottingham"]
    ledger = {(run.model, run.variant, run.seed): run.test for run in read_results("nottingham", ROOT / "results")}
    assert len(REPEATS["runs"]) >= 8 and REPEATS["means"] == means(REPEATS["runs"])
    for run in REPEATS["runs"]:
        whole = sum(frames[kind] * run["nll"][kind] for kind in KINDS) / sum(frames.values())
        assert whole == pytest.approx(ledger[run["model"], run["variant"], run["seed"]], abs=1e-3)


def test_the_findings_have_the_stored_numbers():
    nll = {(one["model"], one["variant"]): one["nll"]["as before"] for one in REPEATS["means"]}
    mine = nll.pop(("r-transformer", "adam"))
    readme = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert f"{mine:.2f}" in readme and f"{min(nll.values()):.2f}" in readme


@pytest.mark.slow
def test_checkpoints_are_measured_if_they_have_the_score_that_they_name(real_data, tmp_path):
    task, path = task_by_name("nottingham"), tmp_path / "repeats.json"
    network, name = build(task, "rnn", d_model=4), tmp_path / "a.safetensors"
    tunes = task.split("test")
    count, nll = count_kinds(tunes), nll_by_kind(network, tunes)
    test = sum(count[kind] * nll[kind] for kind in KINDS) / sum(count.values())
    save_checkpoint(name, network, task.name, "rnn", {"d_model": 4}, test=test, variant="adam", seed=3)
    main([str(name)], path)
    found = json.loads(path.read_text())
    (run,), (by,) = found["runs"], found["conditions"].pop("by")
    assert (run["model"], run["seed"], by["command"].split()[-1]) == ("rnn", 3, str(name))
    assert run["nll"] == pytest.approx(nll, abs=1e-4)
    stored = {key: value for key, value in REPEATS["conditions"].items() if key != "by"}
    assert found["conditions"] == stored and stored["window"] == WINDOW and [*stored["frames"]] == [*CORPORA]
    save_checkpoint(name, network, task.name, "rnn", {"d_model": 4}, test=1.0, variant="adam", seed=3)
    with pytest.raises(ValueError, match=r"a\.safetensors: .*1\.0"):
        main([str(name)], path)


def test_the_stored_numbers_of_the_original_code_are_those_of_the_code():
    told, now = json.loads(original_code.STORED.read_text(encoding="utf-8")), original_code.numbers()
    assert told.keys() == now.keys() and told.pop("steps of sums") == now.pop("steps of sums")
    for name, numbers in told.items():
        assert now[name] == pytest.approx(numbers, abs=0.05), name


def test_windows_score_all_but_the_context_of_a_column_and_its_first_token():
    assert original_code.never_scored(1000, columns=1, context=4, scored=8) == 5
    assert original_code.never_scored(1003, columns=10, context=4, scored=8) == 10 * 5 + 3  # and what no column holds


def test_a_case_of_copies_has_the_gain_of_its_last_scores(monkeypatch):
    gains = iter([[50.0, 60.0], [50.0, 61.0], [50.0, 58.0], [50.0, 58.5]])  # two seeds apart, then two of copies
    monkeypatch.setattr(equal_copies, "scores", lambda *_: next(gains))
    case = equal_copies.Case("digits", "pre", 1, {}, 0.1, 4, 2, 1, (0, 1))
    assert equal_copies.compare(case)["gain_of_copies"] == {"by_seed": [-2, -2.5], "mean": -2.25}


def test_the_stored_cases_of_copies_are_those_of_the_code():
    table = json.loads(equal_copies.STORED.read_text(encoding="utf-8"))
    assert "-dirty" not in table["conditions"]["commit"]
    for case, stored in zip(equal_copies.CASES, table["cases"], strict=True):
        assert (case.task, case.norm, list(case.seeds)) == (stored["task"], stored["norm"], stored["seeds"])
        for start in equal_copies.STARTS:
            assert len(stored["scores"][start]) == len(case.seeds)
            assert {len(one) for one in stored["scores"][start]} == {case.updates // case.every}


@pytest.mark.slow
def test_one_model_learns_from_separate_and_from_copied_weights():
    case = equal_copies.Case("digits", "pre", 2, equal_copies.DIGITS, 5e-3, 4, 2, 1, (0,))
    first, second = (equal_copies.scores(case, start, 0) for start in equal_copies.STARTS)
    assert len(first) == len(second) == 2 and first != second


def test_the_findings_say_how_many_seeds_stay_finite():
    runs = json.loads(sgd_rates.STORED.read_text(encoding="utf-8"))["runs"]
    finite = {(run["learning_rate"], run["start"]): run["not_finite_at_tune"].count(None) for run in runs}
    assert {len(run["not_finite_at_tune"]) for run in runs} == {len(sgd_rates.SEEDS)}
    readme = " ".join((ROOT / "docs/findings.md").read_text(encoding="utf-8").split())
    assert f"{finite[5e-5, 'separate']} of 16 seeds" in readme and f"({finite[5e-5, 'copies']} if" in readme
    last = max(max(run["not_finite_at_tune"]) for run in runs if run["learning_rate"] == 5e-4)
    assert f"diverges at 5e-4 within {last} tunes" in readme


@pytest.mark.slow
def test_a_rate_that_is_far_too_large_is_seen_at_the_second_tune(real_data):
    assert sgd_rates.tunes_until_not_finite(1e30, "copies", 0) == 2
    assert sgd_rates.tunes_until_not_finite(5e-6, "separate", 0, tunes=2) is None


def test_a_model_that_knows_nothing_is_above_the_best_by_all_that_can_be_known() -> None:
    class Even(nn.Module):
        def forward(self, x, lengths=None):
            return torch.zeros(*x.shape[:2], which_past.SYMBOLS)

    for strengths in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        found = which_past.above_best(which_past.dial(strengths), strengths, "test", Even())
        for kind, strength in zip(("rule", "book"), strengths, strict=True):
            assert found[kind] == pytest.approx([strength * math.log(which_past.SYMBOLS)], abs=1e-5)


def test_markov_per_key_costs_less_than_the_marginal_where_notes_are_held():
    held = torch.zeros(40, 88)
    held[:20, 30] = held[20:, 50] = 1
    found = music_controls.simple_models([held], [held])
    assert found["repeats"] == pytest.approx(38 / 39, abs=1e-4)
    assert 0 < found["Markov per key"] < 0.6 * found["marginal"]


def test_a_part_costs_more_switched_off_than_left_out_of_training():
    stored = json.loads(music_controls.STORED.read_text(encoding="utf-8"))
    assert [run["seed"] for run in stored["parts"]] == list(music_controls.SEEDS)
    for run in stored["parts"]:
        for part in music_controls.PARTS:
            assert run["whole"] < run["trained without"][part] < run["switched off"][part]


def test_a_short_run_measures_the_whole_and_each_part_twice():
    tunes = [(torch.rand(50, 88, generator=torch.Generator().manual_seed(0)) < 0.05).float()]
    run = music_controls.parts(tunes, tunes, seed=0, updates=1)
    assert len({run["whole"], *run["switched off"].values(), *run["trained without"].values()}) == 5


def test_all_ways_to_take_a_step_compute_the_same_function():
    before = {name: dict(operation.implementations) for name, operation in OPERATIONS.items()}
    torch.manual_seed(0)
    model, x = rtx.RTransformer(8, 1, 2, 3), torch.randn(2, 70, 8)
    try:
        where_time_goes.add_ways()
        for way in where_time_goes.WAYS.values():
            found: list[torch.Tensor] = []
            where_time_goes.using((*way[:1], "torch"), lambda found=found: found.append(model(x)))()
            torch.testing.assert_close(found[0], model(x), rtol=1e-4, atol=1e-5)
        q, k, v = torch.randn(3, 2, 2, 70, 4).unbind()
        attention = OPERATIONS["causal_attention"]
        for _, name in where_time_goes.WAYS.values():
            expected = attention(q, k, v, 0.0, impl="torch")
            torch.testing.assert_close(attention(q, k, v, 0.0, impl=name), expected, rtol=1e-4, atol=1e-5)
    finally:
        for name, implementations in before.items():
            OPERATIONS[name].implementations = implementations


def test_the_stored_parts_of_a_step_are_no_longer_than_the_step():
    table = json.loads(where_time_goes.STORED.read_text(encoding="utf-8"))
    assert "-dirty" not in table["conditions"]["commit"]
    for step in table["steps"].values():
        for way in where_time_goes.WAYS:
            times = step["ways"][way]
            parts = zip(*(times[part] for part in where_time_goes.PARTS), strict=True)
            assert all(0 < sum(part) < whole for part, whole in zip(parts, times["whole"], strict=True))


@pytest.mark.parametrize(("start", "half_life"), start_of_a_memory.HALF_LIVES.items())
def test_a_start_has_the_half_life_of_its_name(start, half_life):
    layer = start_of_a_memory.LAYERS["RG-LRU"](half_life).recurrence
    kept = layer.introspect(torch.zeros(1, 1, layer.d_model))["kept"]
    torch.testing.assert_close(kept**half_life, torch.full_like(kept, 0.5))
    lstm = start_of_a_memory.LAYERS["LSTM"](half_life).network
    forget = (lstm.bias_ih_l0 + lstm.bias_hh_l0)[lstm.hidden_size : 2 * lstm.hidden_size].sigmoid()
    torch.testing.assert_close(forget**half_life, torch.full_like(forget, 0.5))


def test_a_curve_has_one_value_for_each_epoch_of_a_run_that_was_resumed(tmp_path):
    pieces = {
        "version_0": ["0,9,,300", "1,12,2.5,", "1,19,,200"],
        "version_10": ["2,29,,150"],
        "version_2": ["1,19,,210"],
    }
    for name, rows in pieces.items():
        (tmp_path / "log" / name).mkdir(parents=True)
        text = "\n".join(["epoch,step,train_loss,validation", *rows])
        (tmp_path / "log" / name / "metrics.csv").write_text(text, encoding="utf-8")
    assert word_curves.curve(tmp_path) == [300, 210, 150]
    (tmp_path / "log" / "version_2" / "metrics.csv").unlink()
    (tmp_path / "log" / "version_0" / "metrics.csv").unlink()
    with pytest.raises(ValueError, match="epochs"):
        word_curves.curve(tmp_path)


def test_the_stored_curves_are_those_of_the_ledgers_runs():
    curves = json.loads(word_curves.STORED.read_text(encoding="utf-8"))
    runs = {f"{run.model}-{run.variant}-s{run.seed}": run for run in read_results("ptb-word", ROOT / "results")}
    for name, curve in curves.items():
        assert min(curve) == curve[runs[name].epoch - 1] == pytest.approx(runs[name].validation, rel=1e-6)
