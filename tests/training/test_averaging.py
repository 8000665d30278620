"""NT-ASGD: when the averaging starts, and what is averaged."""

import pytest
import torch

from rtx.training.averaging import Trigger, averaged, non_monotonic_asgd
from rtx.training.states import Exploded


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
def test_it_fires_at_a_loss_worse_than_the_best_before_the_last_n(losses, patience, fires_at):
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
def test_a_frozen_parameter_is_not_averaged(groups):
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


def test_the_last_weights_return_after_an_error():
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    last = steps(weight, loss, optimizer, 3)[-1]
    with pytest.raises(RuntimeError, match="stop"), averaged(optimizer):
        raise RuntimeError("stop")
    assert torch.equal(weight, last)


def test_a_loss_that_is_not_finite_is_refused():
    weight, _ = problem()
    with pytest.raises(Exploded, match="^loss: .*nan"):
        Trigger(non_monotonic_asgd([weight], 0.05)).observe(float("nan"))


def test_a_gpu_keeps_the_number_of_steps_itself():
    class OnGpu(torch.nn.Parameter):
        is_cuda = True

    for weight, expected in ((torch.nn.Parameter(torch.ones(2)), False), (OnGpu(torch.ones(2)), True)):
        assert non_monotonic_asgd([weight], 0.05).param_groups[0]["capturable"] is expected
