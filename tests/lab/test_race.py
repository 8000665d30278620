"""Races take turns, and what autograd keeps is counted once, without the parameters."""

import time

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


def test_a_training_step_goes_back_to_the_parameters_that_the_output_needs_and_are_not_frozen() -> None:
    layer, reached = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), []
    layer.register_parameter("spare", nn.Parameter(torch.ones(1)))
    layer[0].weight.requires_grad_(False)
    for parameter in layer.parameters():
        if parameter.requires_grad:
            parameter.register_hook(lambda gradient: reached.append(tuple(gradient.shape)))
    training_step(layer, torch.randn(5, 4))()
    assert sorted(reached) == [(2,), (2, 3), (3,)]
    assert all(parameter.grad is None for parameter in layer.parameters())


def test_what_is_kept_is_what_the_gradient_needs() -> None:
    x = torch.randn(100, 10, requires_grad=True)
    assert kept_bytes(lambda: x + 1) == 0
    assert kept_bytes(lambda: x.exp()) == 4 * 1000  # its result
    assert kept_bytes(lambda: x.exp().sin().cos()) == 2 * 4 * 1000  # the first is what the second reads: one array
    assert kept_bytes(lambda: [row.square() for row in x]) == 4 * 1000  # views of one array
    layer = nn.Linear(10, 10)
    assert kept_bytes(lambda: layer(x)) == 4 * 1000  # the input; not the weights, which are there anyway
