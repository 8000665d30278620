"""Passages that come again: found as by eye, and what models lose on them."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from rtx import build
from rtx.evidence.ledger import read_results
from rtx.lab.repeats import (
    CORPORA,
    KINDS,
    WINDOW,
    Measured,
    count_kinds,
    kinds,
    main,
    means,
    measure,
    nll_by_kind,
    stored,
)
from rtx.tasks import task_by_name
from rtx.tasks.task import Example
from rtx.training.checkpoint import save_checkpoint

RESULTS = Path(__file__).parents[2] / "results"
SHORT = {"n": "new", "s": "as before", "o": "otherwise", "b": "beginning"}


def tune(letters: str) -> Example:
    """A frame for each letter but the last; the target is the next."""
    notes = torch.eye(26)[[ord(letter) - ord("a") for letter in letters]]
    return Example(notes[:-1], notes[1:])


@pytest.mark.parametrize(
    ("letters", "window", "expected"),
    [
        ("abcabcabd", 1, "nnnsssso"),  # after the last b comes d, and not c
        ("abcabcabd", 3, "bbnnnsso"),
        ("abcabdabc", 2, "bnnnonno"),  # what counts is what followed the last time
        ("aaaa", 2, "bns"),
        ("abcd", 9, "bbb"),
    ],
)
def test_a_passage_is_known_from_before_and_by_what_followed_the_last_time(letters, window, expected):
    one = tune(letters)
    assert [KINDS[kind] for kind in kinds(one.inputs, one.target, window)] == [SHORT[short] for short in expected]


def test_a_window_below_one_is_refused():
    with pytest.raises(ValueError, match="window: expected a whole number of at least 1, got 0"):
        kinds(torch.zeros(3, 2), torch.zeros(3, 2), 0)


class Copy(nn.Module):
    """Sure that a letter is followed by what followed it the last time; without an opinion on new ones."""

    def forward(self, frames, lengths):
        logits, last = torch.zeros_like(frames), {}
        letters = frames[0].argmax(-1).tolist()
        for t, letter in enumerate(letters):
            if t:
                last[letters[t - 1]] = frames[0, t]
            if letter in last:
                logits[0, t] = 40 * last[letter] - 20
        return logits


def test_who_copies_loses_nothing_where_it_goes_on_as_before_and_most_where_it_does_not():
    tunes = [tune("abcabcabd"), tune("abab")]
    assert count_kinds(tunes, 1) == {"new": 5, "as before": 5, "otherwise": 1, "beginning": 0}
    nll = nll_by_kind(Copy(), tunes, 1)
    assert nll["new"] == pytest.approx(26 * math.log(2))
    assert nll["as before"] < 1e-5 and nll["otherwise"] == pytest.approx(40)
    assert math.isnan(nll["beginning"])


def test_seeds_of_one_model_are_taken_together():
    def run(model, seed, new):
        return Measured(model, "adam", seed, dict.fromkeys(KINDS, new))

    found = means([run("gru", 0, 1.0), run("rnn", 0, 5.0), run("gru", 1, 2.0)])
    assert found == {("gru", "adam"): dict.fromkeys(KINDS, 1.5), ("rnn", "adam"): dict.fromkeys(KINDS, 5.0)}


@pytest.mark.slow
def test_a_checkpoint_must_come_to_the_score_that_it_names(real_data, tmp_path):
    task = task_by_name("nottingham")
    path, network = tmp_path / "a.safetensors", build(task, "rnn", d_model=4)
    save_checkpoint(path, network, task.name, "rnn", {"d_model": 4}, test=1.0, variant="adam")
    with pytest.raises(ValueError, match=r"a\.safetensors: expected the score that it names, 1\.0, got"):
        measure(path)


def test_what_is_stored_adds_up_to_the_ledgers_scores():
    told, runs = stored()
    frames = told["frames"][CORPORA[0]]
    ledger = {(run.model, run.variant, run.seed): run.test for run in read_results("nottingham", RESULTS)}
    assert len(runs) >= 8
    for run in runs:
        whole = sum(frames[kind] * run.nll[kind] for kind in KINDS) / sum(frames.values())
        assert whole == pytest.approx(ledger[run.model, run.variant, run.seed], abs=1e-3)


@pytest.mark.slow
def test_what_is_measured_later_stands_behind_what_was_before_and_on_the_same_data(real_data, tmp_path):
    task = task_by_name("nottingham")
    network, path = build(task, "rnn", d_model=4), tmp_path / "repeats.json"
    tunes = task.split("test")
    count, nll = count_kinds(tunes), nll_by_kind(network, tunes)
    test = sum(count[kind] * nll[kind] for kind in KINDS) / sum(count.values())
    names = [str(tmp_path / f"{name}.safetensors") for name in "ab"]
    for seed, name in enumerate(names):
        facts = {"test": test, "variant": "adam", "seed": seed}
        save_checkpoint(Path(name), network, task.name, "rnn", {"d_model": 4}, **facts)
        main([name], path)
    told, runs = stored(path)
    assert [run.seed for run in runs] == [0, 1] and [one["command"].split()[-1] for one in told["by"]] == names
    path.write_text(path.read_text().replace(task.sha256(), "0" * 64))
    with pytest.raises(ValueError, match=r"repeats\.json: expected what was measured on .*remove it to begin anew"):
        main(names, path)
    assert len(stored(path)[1]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_the_stored_frames_are_those_of_the_data(real_data, name):
    told, _ = stored()
    assert told["window"] == WINDOW and told["frames"][name] == count_kinds(task_by_name(name).split("test"))


def test_the_readme_says_what_is_stored():
    nll = means(stored()[1])
    mine = nll.pop(("r-transformer", "adam"))["as before"]
    readme = " ".join((RESULTS.parent / "README.md").read_text(encoding="utf-8").split())
    next_best = min(of_kind["as before"] for of_kind in nll.values())
    assert f"it loses {mine:.2f} nats, the next best model {next_best:.2f};" in readme
