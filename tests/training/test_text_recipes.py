"""The recipes of texts: the papers' tables, averaged SGD, activation penalties, vocabularies in checkpoints."""

import json
from dataclasses import replace
from functools import partial
from itertools import product

import lightning
import pytest
import torch

import rtx
from rtx.evidence.ledger import read_result
from rtx.evidence.record import train
from rtx.tasks import TASKS, task_by_name
from rtx.tasks.loader import loader
from rtx.tasks.task import collate
from rtx.tasks.text import words
from rtx.tasks.vocabulary import vocabulary
from rtx.training.activations import activation_penalty
from rtx.training.checkpoint import load_checkpoint, load_texts, read_card, save_checkpoint
from rtx.training.evaluate import evaluate
from rtx.training.fit import fit
from rtx.training.module import Trainee
from rtx.training.recipe import Recipe, load_recipe, recipe_names
from rtx.training.settings import Settings

CPU = {"accelerator": "cpu", "enable_progress_bar": False}
STORY = "the cat sat on the mat.\nthe dog sat on the cat.\n" * 30


@pytest.fixture
def story(tmp_path, monkeypatch):
    """A task of a short text, under the name "words"."""
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


def sizes(recipe: str, variant: str) -> dict[str, int]:
    loaded = load_recipe(recipe)
    found = {}
    for row in loaded.models:
        plan = loaded.plan(row, variant)
        with torch.device("meta"):
            network = rtx.build(task_by_name(plan.task), plan.model, **plan.hyperparameters)
        found[row] = sum(p.numel() for p in network.parameters())
    return found


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("ptb-char", [1.48, 1.37, 1.36, 1.31, 1.34, None, 1.24]),
        ("ptb-word", [114.50, 92.48, 78.93, 88.68, 122.37, 83.38, 84.38]),
    ],
)
def test_tables_3_and_4_are_whole(name, printed):
    recipe = load_recipe(name)
    rows = ("rnn", "gru", "lstm", "tcn", "transformer", "transformer-xl", "r-transformer")
    assert [recipe.paper(row) for row in rows] == printed
    assert recipe.sweep_values() == {"learning_rate": [1.0, 2.0, 3.0]}


def test_transformer_xl_chooses_from_its_own_rates():
    assert load_recipe("ptb-word").sweep_values("paper-xl") == {"learning_rate": [1e-2, 1e-3, 1e-4]}


@pytest.mark.parametrize("name", recipe_names())
def test_a_sweep_of_rates_holds_the_one_that_is_trained_with(name):
    recipe = load_recipe(name)
    for variant, scale, row in product(recipe.variants, ("full", *recipe.scales), recipe.models):
        rates = recipe.sweep_values(variant, scale).get("learning_rate")
        rate = recipe.plan(row, variant, scale=scale).settings.learning_rate
        assert rates is None or rate in rates, (variant, scale, row)


def test_the_characters_as_the_authors_code_loads_them_are_a_variant():
    recipe = load_recipe("ptb-char")
    assert [recipe.plan("tcn", variant).task for variant in ("paper", "paper-eos")] == ["ptb-char", "ptb-char-eos"]
    assert recipe.plan("tcn", "paper-eos", scale="quick").task == "characters"


def test_the_papers_sizes_are_the_papers():
    words, characters = sizes("ptb-word", "paper"), sizes("ptb-char", "paper")
    in_millions = {row: round(words[row] / 1e6, 1) for row in ("r-transformer", "tcn", "lstm")}
    assert in_millions == {"r-transformer": 2.3, "tcn": 14.7, "lstm": 18.8}
    assert round(characters["r-transformer"] / 1e6, 1) == 14.2
    assert round(sizes("awd", "paper")["awd-lstm"] / 1e6, 1) == 24.2


@pytest.mark.parametrize("name", ["ptb-char", "ptb-word"])
def test_rows_of_the_same_budget_differ_by_two_percent_at_most(name):
    found = sizes(name, "same-parameters")
    goal = sizes(name, "paper")["r-transformer"]
    assert len(found) == 7
    assert all(abs(size / goal - 1) < 0.02 for size in found.values()), found


@pytest.mark.parametrize("name", ["ptb-char", "ptb-word", "awd", "memory"])
def test_every_row_trains_a_quick_step_and_can_be_built_for_hours(name):
    loaded = load_recipe(name)
    for row in loaded.models:
        hours = loaded.plan(row, scale="cpu")
        assert rtx.build(hours.task, hours.model, **hours.hyperparameters).vocabulary == task_by_name(hours.task).inputs
        plan = loaded.plan(row, scale="quick")
        task = task_by_name(plan.task, **plan.task_arguments)
        network = rtx.build(task, plan.model, **plan.hyperparameters)
        batch = next(iter(loader(task, "train", 2, order=plan.settings.batching)))
        loss = task.loss(task.predict(network, batch), batch)
        loss.total.backward()
        assert torch.isfinite(loss.total)


def test_rows_of_the_memory_recipe_differ_in_memory_alone():
    recipe = load_recipe("memory")
    for scale in ("quick", "cpu", "full"):
        plans = {row: recipe.plan(row, scale=scale).hyperparameters for row in recipe.models}
        assert plans["xl-no-memory"] | {"memory": 0} == plans["xl-no-memory"]
        assert plans["xl"] | {"memory": 0} == plans["xl-no-memory"]
        assert plans["xl-long"]["memory"] == 4 * plans["xl"]["memory"] == 4 * plans["xl"]["segment"]
        assert plans["segments"]["segment"] == plans["xl"]["segment"]


def test_a_run_with_averaged_sgd_keeps_the_averaged_weights(story, tmp_path):
    plan = tiny(epochs=8, learning_rate=20.0, clip=0.25).plan("awd-lstm")
    done = fit(plan, 0, tmp_path / "run", **CPU)
    trigger = done.trainee.trigger
    assert trigger is not None and len(trigger.losses) == 8 and trigger.fired
    assert done.epoch > 4, "the best epoch is one of the averaged"
    metric = done.trainee.task.scorer()
    network, state = done.trainee.model.eval(), None
    for batch in loader(done.trainee.task, "validation", 1, order="columns"):
        logits, state = network.read(batch.inputs, state)
        metric.update(*done.trainee.task.measured(logits, batch))
    assert float(metric.compute()) == pytest.approx(done.validation, rel=1e-5) == pytest.approx(min(trigger.losses))


def test_the_trigger_remembers_after_a_resume(story, tmp_path):
    plan = tiny(epochs=4, patience=10).plan("awd-lstm")
    first = fit(plan, 0, tmp_path / "a", epochs=2, **CPU)
    again = fit(plan, 0, tmp_path / "a", resume=True, **CPU)
    whole = fit(plan, 0, tmp_path / "b", **CPU)
    assert again.trainee.trigger.losses == whole.trainee.trigger.losses
    assert again.trainee.trigger.losses[:2] == first.trainee.trigger.losses


def test_activation_penalties_reach_the_gradient_but_not_the_loss_that_is_logged(story):
    torch.manual_seed(0)
    task = words(story, context=0, scored=7)
    batch = next(iter(loader(task, "train", 4)))

    def gradient(**settings) -> torch.Tensor:
        torch.manual_seed(1)
        network = rtx.build(task, "awd-lstm", d_model=8, layers=2)
        trainee = Trainee(task, network, Settings(1, 4, "sgd", 1.0, **settings))
        trainee.trainer = lightning.Trainer(logger=False, enable_checkpointing=False, **CPU)
        loss = task.loss(trainee._predict(batch), batch)
        trainee._objective(loss, loss.count, 0).backward()
        return network.backbone.networks[0].weight_hh_l0.grad, network

    plain, network = gradient()
    penalised, _ = gradient(ar=2.0, tar=1.0)
    raw = network.backbone(network.embed(batch.inputs))  # without dropout the output is the raw one
    (expected,) = torch.autograd.grad(activation_penalty(raw, raw), network.backbone.networks[0].weight_hh_l0)
    torch.testing.assert_close(penalised - plain, expected)


def test_activation_penalties_are_refused_where_there_is_no_such_activation(story):
    task = words(story)
    network = rtx.build(task, "transformer", d_model=8, layers=1, heads=2)
    with pytest.raises(ValueError, match="ar, tar: .*Transformer"):
        Trainee(task, network, Settings(1, 4, "sgd", 1.0, ar=1.0))


def test_a_run_tells_the_score_behind_the_cache_and_saves_its_vocabulary(story, tmp_path):
    path = train(tiny(epochs=2).plan("awd-lstm"), runs=tmp_path / "runs", results=tmp_path / "results", **CPU)
    found = read_result(path)
    assert found.metric == "perplexity" and found.test == found.details["perplexity"]
    assert 1 < found.details["perplexity with cache"] != found.test
    (saved,) = (tmp_path / "runs").rglob("best.safetensors")
    (known,) = load_texts(saved)
    assert known.decode(known.encode("the cat\nsat")) == "the cat\nsat"
    assert json.dumps(read_card(saved)["texts"]) == json.dumps([known.to_json()])


def test_what_was_validated_window_by_window_is_tested_so(story, tmp_path):
    alone = {"optimizer": "adam", "learning_rate": 0.01, "batching": "shuffled", "carry": False, "ar": 0.0, "tar": 0.0}
    plan = tiny(epochs=1, patience=None, **alone).plan("awd-lstm")
    found = read_result(train(plan, runs=tmp_path / "runs", results=tmp_path / "results", **CPU))
    (saved,) = (tmp_path / "runs").rglob("best.safetensors")
    task, network = task_by_name("words", context=0, scored=7), load_checkpoint(saved)
    metric = task.scorer()
    with torch.no_grad():
        for example in task.split("test"):
            metric.update(*task.measured(network(example.inputs[None]), collate([example], "token")))
    assert found.details == {}
    assert found.test == pytest.approx(float(metric.compute()), rel=1e-5)
    assert evaluate(saved) == {"perplexity": pytest.approx(found.test, rel=1e-5)}


def test_a_checkpoint_needs_neither_its_data_nor_their_vocabulary(tmp_path):
    task = replace(task_by_name("words"), inputs=3, outputs=3, texts=(vocabulary("words", ["a", "b", "<unk>"]),))
    network = rtx.build(task, "lstm", d_model=8).eval()
    path = tmp_path / "best.safetensors"
    texts = [text.to_json() for text in task.texts]
    save_checkpoint(path, network, "words", "lstm", {"d_model": 8}, texts=texts)
    loaded = load_checkpoint(path)
    tokens = torch.tensor([[0, 1, 2]])
    assert torch.equal(loaded(tokens), network(tokens))
    assert loaded.decoder.weight is loaded.embedding.weight
    assert load_texts(path)[0].encode("b zebra") == [1, 2]


@pytest.mark.parametrize("texts", [[{"kind": "vocabulary"}], [{"kind": "runes"}], [{}], [3]])
def test_damaged_texts_are_refused(tmp_path, texts):
    path = tmp_path / "best.safetensors"
    save_checkpoint(path, torch.nn.Linear(1, 1), "words", "lstm", {"d_model": 8}, texts=texts)
    with pytest.raises(ValueError, match="its texts are damaged or of an unknown kind"):
        load_texts(path)
