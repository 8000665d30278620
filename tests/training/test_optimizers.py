"""Optimisers and schedules are what the settings say."""

import pytest
import torch
from torch import nn

from rtx.training.optimizers import make_optimizer, make_schedule
from rtx.training.settings import Settings


def settings(**changes) -> Settings:
    return Settings(**{"epochs": 1, "batch_size": 1, "optimizer": "sgd", "learning_rate": 0.1} | changes)


@pytest.mark.parametrize("anneal", [1, 2.0])
def test_a_factor_that_anneals_nothing_is_refused_by_its_name_where_torch_refuses_it(anneal):
    with pytest.raises(ValueError, match=f"anneal: expected a number below 1 on a plateau, got {anneal}"):
        settings(anneal=anneal)
    assert settings(anneal=anneal, anneal_every=2).anneal == anneal


# SGD moves by the rate times decay times weight. So does AdamW, but Adam adds the decay to the gradient, as the papers
# have it, and its first step is the rate, whatever the gradient's size.
@pytest.mark.parametrize(("name", "decayed"), [("sgd", 1.95), ("nt-asgd", 1.95), ("adam", 1.9)])
def test_weights_decay_without_a_gradient(name, decayed):
    weight = nn.Parameter(torch.tensor([2.0]))
    for decay, expected in ((0.0, 2.0), (0.25, decayed)):
        weight.grad = torch.zeros(1)
        make_optimizer(settings(optimizer=name, weight_decay=decay), [weight]).step()
        assert weight.item() == pytest.approx(expected)


@pytest.mark.parametrize(("best", "better"), [("min", [4, 3, 2, 1]), ("max", [1, 2, 3, 4])])
def test_the_rate_stays_while_the_score_becomes_better_and_is_annealed_where_it_does_not(best, better):
    optimizer = make_optimizer(settings(), [nn.Parameter(torch.zeros(1))])
    schedule = make_schedule(settings(anneal=0.25, patience=1), optimizer, best)
    seen = []
    for score in (*better, better[-2], better[-2]):
        schedule.step(score)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([0.1] * 5 + [0.025])
