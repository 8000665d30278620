"""Optimisers and schedules are what the settings say; NT-ASGD starts to average when it should, and averages all."""

import pytest
import torch
from torch import nn

from rtx.training.optimizers import Trigger, averaged, make_optimizer, make_schedule, non_monotonic_asgd
from rtx.training.settings import Settings


def settings(**changes) -> Settings:
    return Settings(**{"epochs": 1, "batch_size": 1, "optimizer": "sgd", "learning_rate": 0.1} | changes)


@pytest.mark.parametrize("anneal", [1, 2.0])
def test_a_plateau_schedule_needs_a_factor_below_one(anneal):
    with pytest.raises(ValueError, match=f"^anneal: .*{anneal}"):
        settings(anneal=anneal)
    assert settings(anneal=anneal, anneal_every=2).anneal == anneal


# SGD and AdamW move by the rate times decay times weight. But Adam adds the decay to the gradient, as in the papers.
# Its first step is the rate, whatever the size of the gradient.
@pytest.mark.parametrize(("name", "decayed"), [("sgd", 1.95), ("nt-asgd", 1.95), ("adam", 1.9)])
def test_weights_decay_without_a_gradient(name, decayed):
    weight = nn.Parameter(torch.tensor([2.0]))
    for decay, expected in ((0.0, 2.0), (0.25, decayed)):
        weight.grad = torch.zeros(1)
        make_optimizer(settings(optimizer=name, weight_decay=decay), [weight]).step()
        assert weight.item() == pytest.approx(expected)


@pytest.mark.parametrize(("best", "better"), [("min", [4, 3, 2, 1]), ("max", [1, 2, 3, 4])])
def test_the_rate_is_annealed_only_when_the_score_stops_improving(best, better):
    optimizer = make_optimizer(settings(), [nn.Parameter(torch.zeros(1))])
    schedule = make_schedule(settings(anneal=0.25, patience=1), optimizer, best)
    seen = []
    for score in (*better, better[-2], better[-2]):
        schedule.step(score)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([0.1] * 5 + [0.025])


def problem():
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(3))
    return weight, lambda: (weight - torch.randn(3)).square().sum()


def steps(weight, loss, optimizer, count):
    path = []
    for _ in range(count):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        path.append(weight.detach().clone())
    return path


def fired(trigger, losses):
    """Return after each loss whether weights are averaged."""
    found = []
    for loss in losses:
        trigger.observe(float(loss))
        found.append(trigger.fired)
    return found


def test_nt_asgd_is_plain_sgd_until_it_fires():
    paths = []
    for make in (non_monotonic_asgd, torch.optim.SGD):
        weight, loss = problem()
        paths.append(torch.stack(steps(weight, loss, make([weight], 0.05), 5)))
    torch.testing.assert_close(*paths)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_average_is_of_all_weights_since_the_trigger_fired_and_frozen_ones_stay(groups):
    weight, loss = problem()
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    both = [frozen, weight] if groups == 1 else [{"params": [frozen]}, {"params": [weight]}]
    optimizer = non_monotonic_asgd(both, 0.05)
    trigger = Trigger(optimizer, 1, [])
    steps(weight, loss, optimizer, 4)
    assert fired(trigger, (1.0, 0.9, 1.1)) == [False, False, True]
    path = steps(weight, loss, optimizer, 6)
    with pytest.raises(RuntimeError, match="stop"), averaged(optimizer):
        torch.testing.assert_close(weight.detach(), torch.stack(path).mean(0))
        assert torch.equal(frozen, torch.ones(2))
        raise RuntimeError("stop")
    assert torch.equal(weight.detach(), path[-1])  # also after an error


@pytest.mark.parametrize(
    ("losses", "patience", "fires_at"),
    [
        ([5, 4, 3, 2, 1, 0.5, 0.4], 2, None),  # always better
        ([5, 4, 4.5, 4.5, 4.5], 2, 4),  # the 4 must be more than two validations ago
        ([5, 4, 4.5, 3.9, 4.2, 3.8], 2, 4),  # 4.2 is worse than the 4 of three validations ago
        ([4, 5, 5, 4, 4], 2, None),  # as good as the best is not worse
        ([1, 2], 2, None),  # too early
    ],
)
def test_it_fires_at_a_loss_worse_than_the_best_before_the_last_n(losses, patience, fires_at):
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    steps(weight, loss, optimizer, 1)
    trigger = Trigger(optimizer, patience, [])
    assert fired(trigger, losses) == [fires_at is not None and i >= fires_at for i in range(len(losses))]


def test_the_average_survives_a_checkpoint():
    weight, loss = problem()
    optimizer = non_monotonic_asgd([weight], 0.05)
    with averaged(optimizer):  # before the first step the average is the weights
        assert torch.equal(weight, problem()[0])
    steps(weight, loss, optimizer, 2)
    fired(Trigger(optimizer, 1, []), (1.0, 0.9, 1.1))
    steps(weight, loss, optimizer, 3)
    other = nn.Parameter(weight.detach().clone())
    again = non_monotonic_asgd([other], 0.05)
    again.load_state_dict(optimizer.state_dict())
    assert Trigger(again, 1, []).fired
    with averaged(optimizer), averaged(again):
        assert torch.equal(weight, other)
