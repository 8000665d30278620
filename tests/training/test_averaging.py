"""NT-ASGD against a loop that follows Algorithm 1."""

import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rtx.training.averaging import Trigger, averaged, non_monotonic_asgd


def problem():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(3))
    return weight, lambda: (weight - torch.randn(3)).square().sum()


def steps(weight, loss, optimizer, count):
    path = []
    for _ in range(count):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        path.append(weight.detach().clone())
    return path


def test_it_is_plain_sgd_until_it_fires():
    weight, loss = problem()
    ours = steps(weight, loss, non_monotonic_asgd([weight], 0.05), 5)
    weight, loss = problem()
    plain = steps(weight, loss, torch.optim.SGD([weight], 0.05), 5)
    torch.testing.assert_close(torch.stack(ours), torch.stack(plain))


def averaged_path(weight, loss, optimizer):
    """The weights of six steps after four, and a trigger that fired."""
    trigger = Trigger(optimizer, patience=1)
    steps(weight, loss, optimizer, 4)
    assert [trigger.observe(value) for value in (1.0, 0.9, 1.1)] == [False, False, True]
    return steps(weight, loss, optimizer, 6)


def test_the_average_is_of_all_weights_from_the_trigger_on():
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    path = averaged_path(weight, loss, optimizer)
    with averaged(optimizer):
        torch.testing.assert_close(weight.detach(), torch.stack(path).mean(0))
    assert torch.equal(weight.detach(), path[-1])


@pytest.mark.parametrize(
    ("losses", "patience", "fires_at"),
    [
        ([5, 4, 3, 2, 1, 0.5, 0.4], 2, None),  # always better
        ([5, 4, 4.5, 4.5, 4.5], 2, 4),  # the 4 must be more than two validations ago
        ([5, 4, 4.5, 3.9, 4.2, 3.8], 2, 4),  # 4.2 is worse than the 4 of three validations ago
        ([4, 5, 5, 4, 4], 2, None),  # as good as the best is not worse
        ([1, 2], 2, None),  # too early to say
    ],
)
def test_it_fires_when_worse_than_the_best_but_for_the_last_n(losses, patience, fires_at):
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    steps(weight, loss, optimizer, 1)
    trigger = Trigger(optimizer, patience)
    fired = [trigger.observe(float(value)) for value in losses]
    assert fired == [fires_at is not None and i >= fires_at for i in range(len(losses))]


def test_the_average_survives_a_checkpoint():
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    steps(weight, loss, optimizer, 2)
    trigger = Trigger(optimizer, 1)
    for value in (1.0, 0.9, 1.1):
        trigger.observe(value)
    steps(weight, loss, optimizer, 3)
    other = torch.nn.Parameter(weight.detach().clone())
    again = non_monotonic_asgd([other], 0.05)
    again.load_state_dict(optimizer.state_dict())
    assert Trigger(again, 1).fired
    with averaged(optimizer), averaged(again):
        assert torch.equal(weight, other)


@pytest.mark.parametrize("groups", [1, 2])
def test_what_is_frozen_is_neither_asked_for_its_steps_nor_averaged(groups):
    weight, loss = problem()
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    both = [frozen, weight] if groups == 1 else [{"params": [frozen]}, {"params": [weight]}]
    optimizer = non_monotonic_asgd(both, 0.05)
    path = averaged_path(weight, loss, optimizer)
    with averaged(optimizer):
        torch.testing.assert_close(weight.detach(), torch.stack(path).mean(0))
        assert torch.equal(frozen, torch.ones(2))


def test_before_the_first_step_the_average_is_the_weights():
    weight, _ = problem()
    before = weight.detach().clone()
    with averaged(non_monotonic_asgd([weight], 0.05)):
        assert torch.equal(weight, before)


def test_the_weights_come_back_also_after_an_error():
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    last = steps(weight, loss, optimizer, 3)[-1]
    with pytest.raises(RuntimeError, match="stop"), averaged(optimizer):
        raise RuntimeError("stop")
    assert torch.equal(weight, last)


def test_a_loss_that_is_no_number_is_refused():
    weight, _ = problem()
    with pytest.raises(ValueError, match="loss: expected a finite number, got nan"):
        Trigger(non_monotonic_asgd([weight], 0.05)).observe(float("nan"))


class OnGpu(torch.nn.Parameter):
    """Says that it is on a GPU."""

    is_cuda = True


class Questions(TorchDispatchMode):
    """How often a number is asked for."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function is torch.ops.aten._local_scalar_dense.default
        return function(*args, **kwargs or {})


def settled(weight, loaded=None):
    optimizer = non_monotonic_asgd([weight], 0.05)
    if loaded:
        optimizer.load_state_dict(loaded)
    trigger = Trigger(optimizer, patience=1)
    trigger.settle()
    return optimizer


@pytest.mark.parametrize("resumed", [False, True])
def test_a_gpu_is_asked_for_no_number_at_a_step_and_finds_the_same(resumed, monkeypatch):
    monkeypatch.setattr(
        sys.modules[torch.optim.ASGD.__module__], "_get_capturable_supported_devices", lambda **_: ["cpu"]
    )
    found, asked = [], []
    for kind in (torch.nn.Parameter, OnGpu):
        weight, loss = problem()
        loaded = None
        if resumed:  # from a checkpoint that was written on a CPU
            before = non_monotonic_asgd([weight], 0.05)
            steps(weight, loss, before, 2)
            loaded = before.state_dict()
        weight = kind(weight.detach())
        optimizer = settled(weight, loaded)
        found.append(averaged_path(weight, lambda weight=weight: (weight - torch.randn(3)).square().sum(), optimizer))
        with averaged(optimizer):
            found[-1].append(weight.detach().clone())
        with Questions() as questions:
            optimizer.step()
        asked.append(questions.count)
    torch.testing.assert_close(*map(torch.stack, found))
    assert asked[0] and not asked[1]


def test_what_was_averaged_on_a_gpu_goes_on_on_a_cpu():
    weight, loss = problem()
    optimizer = settled(weight)
    steps(weight, loss, optimizer, 2)
    saved = optimizer.state_dict()
    saved["param_groups"][0]["capturable"] = True  # as it is there
    again = settled(torch.nn.Parameter(weight.detach().clone()), saved)
    assert not again.param_groups[0]["capturable"]
