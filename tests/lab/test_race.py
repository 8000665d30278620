"""Races take turns, and what autograd keeps is counted once, without the parameters."""

import time

import pytest
import torch
from torch import nn

from rtx.lab.race import kept_bytes, race, training_step


def test_runners_take_turns_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []

    def busy(name: str, seconds: float) -> None:
        calls.append(name)
        end = time.process_time() + seconds * (10 if calls.count(name) == 1 else 1)
        while time.process_time() < end:
            pass

    times = race({"a": lambda: busy("a", 0.001), "b": lambda: busy("b", 0.02)}, rounds=3)
    assert calls == ["a", "b"] * 4
    assert 1 <= times["a"] < 10 <= 20 <= times["b"] < 200


def test_a_race_needs_a_runner() -> None:
    with pytest.raises(ValueError, match="runners: expected at least one, got none"):
        race({})
    with pytest.raises(ValueError, match="rounds: expected a whole number of at least 1, got 0"):
        race({"a": lambda: None}, rounds=0)


def test_a_training_step_goes_back_to_inputs_and_parameters() -> None:
    layer = nn.Linear(4, 3)
    reached = []
    for parameter in layer.parameters():
        parameter.register_hook(lambda gradient: reached.append(gradient.shape))
    training_step(layer, torch.randn(5, 4))()
    assert sorted(reached) == [(3,), (3, 4)]
    assert all(parameter.grad is None for parameter in layer.parameters())


def test_a_training_step_leaves_out_what_is_frozen_and_what_the_output_does_not_need() -> None:
    layer, reached = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), []
    layer.register_parameter("spare", nn.Parameter(torch.ones(1)))
    layer[0].weight.requires_grad_(False)
    for parameter in layer.parameters():
        if parameter.requires_grad:
            parameter.register_hook(lambda gradient: reached.append(tuple(gradient.shape)))
    training_step(layer, torch.randn(5, 4))()
    assert sorted(reached) == [(2,), (2, 3), (3,)]


def test_what_is_kept_is_what_the_gradient_needs() -> None:
    x = torch.randn(100, 10, requires_grad=True)
    assert kept_bytes(lambda: x + 1) == 0
    assert kept_bytes(lambda: x.exp()) == 4 * 1000  # its result
    assert kept_bytes(lambda: x.exp().sin().cos()) == 2 * 4 * 1000  # the first is what the second reads: one array
    assert kept_bytes(lambda: [row.square() for row in x]) == 4 * 1000  # views of one array
    layer = nn.Linear(10, 10)
    assert kept_bytes(lambda: layer(x)) == 4 * 1000  # the input; not the weights, which are there anyway
