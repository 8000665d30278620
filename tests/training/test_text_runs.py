"""Runs on texts: averaged SGD, activation penalties, and vocabularies in checkpoints."""

import json
from functools import partial

import pytest
import torch
from tiny_recipe import CPU

import rtx
from rtx.evidence.ledger import read_result
from rtx.tasks import TASKS, task_by_name
from rtx.tasks.loader import loader
from rtx.tasks.task import collate
from rtx.tasks.text import words
from rtx.training import module
from rtx.training.auxiliary_losses import activation_penalty
from rtx.training.checkpoint import load_checkpoint, load_texts, read_card
from rtx.training.evaluate import evaluate
from rtx.training.fit import fit
from rtx.training.module import Trainee
from rtx.training.optimizers import Trigger
from rtx.training.recipe import Recipe
from rtx.training.settings import Settings

STORY = "the cat sat on the mat.\nthe dog sat on the cat.\n" * 30


@pytest.fixture
def story(tmp_path, monkeypatch):
    """Register a task of a short text under the name "words"."""
    path = tmp_path / "story.txt"
    path.write_text(STORY, encoding="utf-8")
    monkeypatch.setitem(TASKS, "words", partial(words, path))
    return path


def tiny(**settings) -> Recipe:
    base = {"epochs": 6, "batch_size": 4, "optimizer": "nt-asgd", "learning_rate": 2.0, "patience": 1}
    base |= {"batching": "columns", "carry": True, "ar": 2.0, "tar": 1.0}
    return Recipe(
        name="tiny",
        title="A story",
        source="no paper",
        task="words",
        default_variant="plain",
        variants={"plain": base | settings},
        models={"awd-lstm": {"d_model": 8, "layers": 1, "task_arguments": {"context": 0, "scored": 7}}},
    )


def test_a_run_with_averaged_sgd_keeps_the_averaged_weights(story, tmp_path, monkeypatch):
    # a loss of 0 before the first epoch starts the averaging after the second one, while the loss still falls
    monkeypatch.setattr(module, "Trigger", lambda optimizer, patience, losses: Trigger(optimizer, patience, [0.0]))
    done = fit(tiny(epochs=6).plan("awd-lstm"), 0, tmp_path / "run", **CPU)
    trigger = done.trainee.trigger
    assert trigger is not None and len(trigger.losses) == 7 and trigger.fired
    assert done.epoch == 6
    for weight in done.trainee.model.parameters():
        torch.testing.assert_close(weight.detach(), trigger.optimizer.state[weight]["ax"], rtol=0, atol=0)
    metric = done.trainee.task.scorer()
    network, state = done.trainee.model.eval(), None
    for batch in loader(done.trainee.task, "validation", 1, order="columns"):
        logits, state = network.read(batch.inputs, state)
        metric.update(*done.trainee.task.measured(logits, batch))
    assert float(metric.compute()) == pytest.approx(done.validation, rel=1e-5) == pytest.approx(min(trigger.losses[1:]))


def test_the_losses_of_the_trigger_are_resumed(story, tmp_path):
    plan = tiny(epochs=4, patience=10).plan("awd-lstm")
    first = fit(plan, 0, tmp_path / "a", epochs=2, **CPU)
    again = fit(plan, 0, tmp_path / "a", resume=True, **CPU)
    whole = fit(plan, 0, tmp_path / "b", **CPU)
    assert again.trainee.trigger.losses == whole.trainee.trigger.losses
    assert again.trainee.trigger.losses[:2] == first.trainee.trigger.losses


def test_activation_penalties_change_the_gradient_but_not_the_logged_loss(story):
    torch.manual_seed(0)
    task = words(story, context=0, scored=7)
    batch = next(iter(loader(task, "train", 4)))

    def gradient(**settings) -> torch.Tensor:
        torch.manual_seed(1)
        network = rtx.build(task, "awd-lstm", d_model=8, layers=2)
        trainee = Trainee(task, network, Settings(1, 4, "sgd", 1.0, **settings))
        logged = []
        trainee.log = lambda name, value, **_: logged.append(value)
        trainee.training_step(batch, 0).backward()
        return network.backbone.networks[0].weight_hh_l0.grad, network, logged

    plain, network, logged = gradient()
    penalised, _, logged_with_penalty = gradient(ar=2.0, tar=1.0)
    assert logged == logged_with_penalty
    raw = network.backbone(network.embed(batch.inputs))  # without dropout the output is the raw output
    (expected,) = torch.autograd.grad(activation_penalty(raw, raw), network.backbone.networks[0].weight_hh_l0)
    torch.testing.assert_close(penalised - plain, expected)


def test_a_run_records_the_score_with_a_cache_and_saves_its_vocabulary(story, run, tmp_path):
    found = read_result(run(tiny(epochs=2).plan("awd-lstm")))
    assert found.metric == "perplexity" and found.test == found.details["perplexity"]
    assert 1 < found.details["perplexity with cache"] != found.test
    (saved,) = tmp_path.rglob("best.safetensors")
    (known,) = load_texts(saved)
    assert known.decode(known.encode("the cat\nsat")) == "the cat\nsat"
    assert json.dumps(read_card(saved)["texts"]) == json.dumps([known.to_json()])


def test_a_model_validated_window_by_window_is_tested_window_by_window(story, run, tmp_path):
    alone = {"optimizer": "adam", "learning_rate": 0.01, "batching": "shuffled", "carry": False, "ar": 0.0, "tar": 0.0}
    plan = tiny(epochs=1, **alone).plan("awd-lstm")
    found = read_result(run(plan))
    (saved,) = tmp_path.rglob("best.safetensors")
    task, network = task_by_name("words", context=0, scored=7), load_checkpoint(saved)
    metric = task.scorer()
    with torch.no_grad():
        for example in task.split("test"):
            metric.update(*task.measured(network(example.inputs[None]), collate([example], "token")))
    assert found.details == {}
    assert found.test == pytest.approx(float(metric.compute()), rel=1e-5)
    assert evaluate(saved) == {"perplexity": pytest.approx(found.test, rel=1e-5)}
