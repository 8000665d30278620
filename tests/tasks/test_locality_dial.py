"""The locality dial: its texts follow rule and book as often as the strengths say, and nobody beats the best loss."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

import rtx
from rtx.tasks.task import IGNORED
from rtx.tasks.toy.locality_dial import draw_rule, locality_dial, optimal_loss

V = 8


def read(example, rule):
    """(what the rule says, what the book says, whether it is a recall, what came) of each scored step."""
    inputs, target = example
    book = {int(row[:V].argmax()): int(row[V:-1].argmax()) for row in inputs[:V]}
    text = [int(row[:V].argmax()) for row in inputs[V:]]
    for t in range(1, len(text)):
        yield int(rule[text[t - 1], text[t]]), book[text[t]], bool(inputs[V + t, -1]), int(target[V + t])


def rule_of(seed: int = 0):
    return draw_rule(np.random.default_rng((seed, 3)), V)


def test_a_full_strength_text_follows_rule_and_book_without_exception():
    task = locality_dial(local=1.0, long=1.0, seed=5)
    kinds = Counter()
    for example in task.split("validation")[:50]:
        for local, partner, recall, came in read(example, rule_of(5)):
            assert came == (partner if recall else local)
            kinds[recall] += 1
    assert kinds[True] / kinds.total() == pytest.approx(0.5, abs=0.05)


def test_a_sequence_is_a_book_and_a_text_and_each_target_the_next_symbol():
    task = locality_dial(length=12)
    examples = task.split("test")
    assert {len(e.inputs) for e in examples} == {V + 12}
    books = set()
    for inputs, target in examples[:100]:
        assert inputs.shape == (len(target), 2 * V + 1) == (len(target), task.inputs)
        keys, partners = inputs[:V, :V].argmax(1), inputs[:V, V:-1].argmax(1)
        assert sorted(keys.tolist()) == sorted(partners.tolist()) == list(range(V))
        books.add(tuple(partners[keys.argsort()].tolist()))
        assert (inputs[V:, V:-1] == 0).all() and (inputs[V:, :V].sum(1) == 1).all()
        assert (target[: V + 1] == IGNORED).all() and (target[V + 1 :] != IGNORED).all()
        assert torch.equal(target[V + 1 : -1], inputs[V + 2 :, :V].argmax(1))
    assert len(books) == 100


@pytest.mark.parametrize(("local", "long"), [(0.9, 0.9), (1.0, 0.0), (0.3, 0.8)])
def test_knowing_rule_and_book_gives_the_optimal_loss(local, long):
    task = locality_dial(local=local, long=long)
    nll = {False: [], True: []}
    for example in task.split("test")[:400]:
        for rule, partner, recall, came in read(example, rule_of()):
            strength = long if recall else local
            p = strength * (came == (partner if recall else rule)) + (1 - strength) / V
            nll[recall].append(-math.log(p))
    assert np.mean(nll[False]) == pytest.approx(optimal_loss(local), abs=0.04)
    assert np.mean(nll[True]) == pytest.approx(optimal_loss(long), abs=0.04)


def test_the_optimal_loss_is_the_entropy():
    assert optimal_loss(1.0) == 0
    assert optimal_loss(0.0) == pytest.approx(math.log(8)) and optimal_loss(0.0, 5) == pytest.approx(math.log(5))
    right = 0.5 + 0.5 / 4
    assert optimal_loss(0.5, 4) == pytest.approx(-right * math.log(right) - 3 * 0.125 * math.log(0.125))


def test_a_shorter_context_says_nothing_about_a_local_symbol():
    assert (np.sort(rule_of(), axis=0) == np.arange(V)[:, None]).all()
    pairs = Counter()
    for example in locality_dial(local=1.0, long=0.0).split("test")[:600]:
        text = example.inputs[V:, :V].argmax(1)
        pairs.update((int(text[t]), int(example.target[V + t])) for t in range(2, 50) if not example.inputs[V + t, -1])
    shares = np.array([[pairs[a, b] for b in range(V)] for a in range(V)]) / pairs.total()
    assert np.abs(shares * V * V - 1).max() < 0.35


class Known(nn.Module):
    """Answers by the rule at local steps, by nothing at recalls."""

    def __init__(self, rule) -> None:
        super().__init__()
        self.rule = nn.Parameter(torch.from_numpy(rule).double(), requires_grad=False)

    def forward(self, x, lengths):
        symbols = x[..., :V].argmax(-1)
        said = self.rule.long()[symbols.roll(1, 1), symbols]
        return 50.0 * torch.eye(V)[said] * (1 - x[..., -1:])


def test_examine_scores_local_and_recalled_symbols_separately():
    task = locality_dial(local=1.0, long=1.0)
    found = task.examine(Known(rule_of()), "test", 150)
    assert next(iter(found)) == task.metric
    assert found["local"] == pytest.approx(0, abs=1e-6) and found["recalled"] == pytest.approx(math.log(V), abs=1e-6)
    assert 0.45 * math.log(V) < found[task.metric] < 0.55 * math.log(V)
    assert (found["optimal, local"], found["optimal, recalled"]) == (0, 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@torch.no_grad()
def test_examine_takes_a_model_of_any_precision(dtype):
    task = locality_dial()
    torch.manual_seed(0)
    network = rtx.build(task, "gru", d_model=4)
    expected = task.examine(network, "test", 20)
    assert task.examine(network.to(dtype), "test", 20) == pytest.approx(expected, rel=0.02)


def test_examine_leaves_out_a_kind_that_has_no_symbol():
    task = locality_dial(length=3)  # of which two are scored
    inputs, target = task.split("test")[0]
    (recall,) = set(inputs[target != IGNORED, -1].tolist())
    found = task.examine(Known(rule_of()), "test", 1)
    assert ("recalled" in found, "local" in found) == (recall == 1, recall == 0)
    assert found[task.metric] == found["recalled" if recall else "local"]
