"""Training in place, as a CUDA graph replays it, is training; where no graph can be made, the log says why."""

import logging
from dataclasses import replace

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from rtx.tasks import build
from rtx.training.fit import new_trainee
from rtx.training.graphs import StaticSteps, obstacle, static_steps
from rtx.training.ledger import read_result
from rtx.training.run import train

CPU = {"accelerator": "cpu", "enable_progress_bar": False}
GPU = {"accelerator": "gpu", "devices": 1, "enable_progress_bar": False}


class InPlace(Callback):
    """Has a run compute every gradient in place, without a graph."""

    def on_fit_start(self, trainer, pl_module):
        pl_module.steps = static_steps(pl_module, record=False)


@pytest.fixture
def score(tmp_path):
    def of(plan, name, **options):
        path = train(plan, runs=tmp_path / name, results=tmp_path / "results", **(CPU | options))
        result = read_result(path)
        return result.test, result.validation, result.epoch, result.parameters

    return of


@pytest.mark.parametrize(
    "overrides",
    [
        {"batch_size": 5},  # the last batch is of another shape
        {"clip": 0.1, "reduction": "sum"},
        {"optimizer": "sgd", "learning_rate": 0.1},
    ],
)
def test_a_run_in_place_ends_where_the_ordinary_one_does(recipe, score, overrides):
    plan = recipe.plan("r-transformer", overrides=overrides)
    assert score(plan, "in place", callbacks=[InPlace()]) == score(plan, "ordinary")


def test_half_precision_in_place_ends_where_it_does_elsewhere(recipe, score):
    plan = recipe.plan("gru")
    found, wanted = (
        score(plan, name, precision="bf16-mixed", callbacks=callbacks)
        for name, callbacks in (("in place", [InPlace()]), ("ordinary", []))
    )
    assert found == wanted


def test_batches_are_copied_to_where_the_first_one_lies_and_gradients_stay(recipe):
    trainee = new_trainee(recipe.plan("gru"), 0)
    batches = [*trainee.train_dataloader()]
    steps = StaticSteps(lambda batch: (loss := trainee.loss(batch), loss.total), trainee.parameters(), record=False)
    steps(batches[0])
    places = [one.data_ptr() for one in (*steps.place, *(p.grad for p in trainee.parameters()))]
    loss, objective = steps(batches[1])
    assert [one.data_ptr() for one in (*steps.place, *(p.grad for p in trainee.parameters()))] == places
    assert loss.total == objective and not objective.requires_grad
    found = [p.grad.clone() for p in trainee.parameters()]
    trainee.zero_grad()
    trainee.loss(batches[1]).total.backward()
    for one, wanted in zip(found, trainee.parameters(), strict=True):
        torch.testing.assert_close(one, wanted.grad, rtol=0, atol=0)


def test_what_the_recording_draws_is_given_back(recipe, monkeypatch):
    """A resumed run records again, and shall drop the units that it would have dropped."""

    def recorded_on_the_cpu(run, device):
        for _ in range(3):
            run()
        return run

    monkeypatch.setattr("rtx.training.graphs.recorded", recorded_on_the_cpu)
    trainee = new_trainee(recipe.plan("r-transformer", overrides={"dropout": 0.5}), 0)
    batch = next(iter(trainee.train_dataloader()))
    losses = []
    for record in (True, False):
        torch.manual_seed(1)
        steps = StaticSteps(lambda b: (loss := trainee.loss(b), loss.total), trainee.parameters(), record)
        losses.append([steps(batch)[1].item() for _ in range(2)])
    assert losses[0] == losses[1]
    assert losses[0][0] != losses[0][1]


def test_without_a_gpu_the_run_goes_on_and_says_so(recipe, score, caplog):
    plan = recipe.plan("gru")
    assert score(plan, "asked for", graph=True) == score(plan, "not asked for")
    assert "--graph: graphs are made for CUDA devices, and this run is on cpu; training goes on without" in caplog.text


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"accumulate": 2}, "gradients of several batches are added up"),
        ({"carry": True, "batching": "columns"}, "a state is carried from batch to batch"),
    ],
)
def test_steps_that_differ_from_one_another_are_not_recorded(recipe, settings, reason, monkeypatch):
    trainee, trainer = new_trainee(recipe.plan("gru"), 0), lightning.Trainer(logger=False, **CPU)
    monkeypatch.setattr(type(trainer.strategy), "root_device", torch.device("cuda"))  # what else would be in the way
    assert obstacle(trainee, trainer) is None
    trainee.settings = replace(trainee.settings, **settings)
    assert obstacle(trainee, trainer) == reason


def test_a_model_whose_slope_changes_is_not_recorded(recipe, tiny_task, monkeypatch):
    trainee, trainer = new_trainee(recipe.plan("gru"), 0), lightning.Trainer(logger=False, **CPU)
    monkeypatch.setattr(type(trainer.strategy), "root_device", torch.device("cuda"))
    trainee.model = build(tiny_task, "hm-rnn", d_model=8)
    assert "slope changes" in obstacle(trainee, trainer)


@pytest.mark.gpu
@pytest.mark.parametrize("task", ["tiny", "digits"])
def test_a_recorded_run_learns_what_the_ordinary_one_learns(recipe, score, task, caplog):
    caplog.set_level(logging.INFO)
    settings = {"batch_size": 5, "dropout": 0.0}  # a replay may draw other numbers
    plan = recipe.plan("r-transformer", overrides=settings)
    if task != "tiny":
        plan = replace(plan, task=task, settings=replace(plan.settings, limit=100, limit_evaluation=50, epochs=2))
    recorded, ordinary = (score(plan, name, **GPU, graph=name == "graph") for name in ("graph", "ordinary"))
    assert recorded == pytest.approx(ordinary, rel=1e-3)
    assert "goes on without" not in caplog.text
