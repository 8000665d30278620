"""The state of a run as a file: damage is found, and a run that fails leaves a good checkpoint behind."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from test_survival import assert_same, numbers
from tiny_recipe import tiny_text_recipe

from rtx.training.fit import new_trainee
from rtx.training.states import CannotGoOn, Exploded, load_state, random_state, save_state, set_random_state

STATE = {"weights": torch.randn(100), "model": (torch.randn(2, 3), 4, ((torch.randn(2, 1), None),)), "text": "a"}


class Sabotage(Callback):
    """Changes something before a step."""

    def __init__(self, step, change) -> None:
        self.step, self.change = step, change

    def on_train_batch_start(self, trainer, module, *_) -> None:
        if trainer.global_step == self.step:
            self.change(next(module.parameters()))


def test_every_bit_that_changes_and_every_byte_that_is_missing_is_found(tmp_path):
    path, draws = tmp_path / "a.ckpt", random.Random(0)
    save_state(path, STATE)
    whole = path.read_bytes()
    assert_same(load_state(path), STATE)
    assert_same(torch.load(path, weights_only=True), STATE)  # without rtx, too
    for _ in range(50):
        place, bit = draws.randrange(len(whole)), 1 << draws.randrange(8)
        for changed in (whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :], whole[:place]):
            path.write_bytes(changed)
            with pytest.raises(CannotGoOn, match=r"a\.ckpt"):
                load_state(path)


def test_a_carried_state_is_loaded_to_the_device_of_the_run(recipe):
    """Lightning reads a checkpoint while the model is still on the CPU."""
    trainee, state = new_trainee(recipe.plan("gru"), 0), (torch.zeros(2, 1, 3),)
    facts = {"card": trainee.card, "precision": "32-true", "live": 1, "observed": [], "states": [state], "commits": []}
    strategy = SimpleNamespace(root_device=torch.device("meta"))
    trainee.trainer = SimpleNamespace(precision="32-true", max_epochs=3, strategy=strategy)
    trainee.commit, facts["commits"] = "b", ["a", "b"]
    trainee.on_load_checkpoint({"rtx": facts, "epoch": 1, "batches": 0})
    assert trainee.earlier_commits == ["a"]
    assert trainee.device.type == "cpu" and trainee.state[0].device.type == "meta"


def test_every_generator_continues_where_it_was(tmp_path):
    def draw():
        return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(3)

    random.gauss(0, 1), np.random.randn()  # each keeps a second number for later
    save_state(tmp_path / "a.ckpt", {"random": random_state(torch.device("cpu"))})
    first = draw()
    draw()
    set_random_state(load_state(tmp_path / "a.ckpt")["random"], torch.device("cpu"))
    assert_same(draw(), first)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda parameter: parameter.data.fill_(float("nan")), r"^loss: .*nan .*10.*0\.01"),
        (lambda parameter: parameter.register_hook(lambda g: g / 0), r"^gradient norm: .*(nan|inf) .*10.*0\.01"),
    ],
)
def test_a_run_stops_before_an_update_with_nan_and_can_be_resumed(recipe, run, tmp_path, change, said):
    plan = recipe.plan("gru")
    run(plan, "whole")
    with pytest.raises(Exploded, match=said):
        run(plan, "spoilt", callbacks=[Sabotage(10, change)])
    (last,) = (tmp_path / "spoilt").rglob("last.ckpt")
    assert load_state(last)["global_step"] == 8  # the start of the epoch
    run(plan, "spoilt", resume=True)
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "spoilt"))


def test_weights_that_are_not_finite_are_never_saved(recipe, run, tmp_path):
    class Overflow(Callback):
        def on_train_batch_end(self, trainer, module, *_) -> None:
            if trainer.global_step == 10:
                next(module.parameters()).data.fill_(float("inf"))

    with pytest.raises(Exploded, match=r"^model\.\S+: .*10.*last\.ckpt"):
        run(recipe.plan("gru"), callbacks=[Overflow()], every_seconds=0)
    (last,) = tmp_path.rglob("last.ckpt")
    assert load_state(last)["global_step"] == 9


def test_a_run_that_stopped_early_is_not_trained_further(recipe, run, tmp_path):
    plan = recipe.plan("gru", overrides={"epochs": 50, "learning_rate": 3.0, "stop_after": 1})
    first = run(plan)
    before = numbers(tmp_path / "a")
    assert before["last"]["epoch"] < 50
    assert run(plan, resume=True) == first  # the same entry of the ledger
    assert_same(numbers(tmp_path / "a"), before)


def test_a_fresh_run_removes_the_checkpoints_of_a_finished_one_but_not_its_model(recipe, run, tmp_path):
    plan = recipe.plan("gru")
    run(plan)
    before = next(tmp_path.rglob("best.safetensors")).read_bytes()

    class Crash(Callback):
        def on_train_start(self, *_) -> None:
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        run(plan, callbacks=[Crash()])
    (kept,) = [path for path in tmp_path.rglob("*") if path.suffix in (".ckpt", ".safetensors")]
    assert kept.name == "former.safetensors" and kept.read_bytes() == before


@pytest.mark.usefixtures("tiny_tasks")
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("lstm", {}),
        ("transformer-xl", {"anneal": 0.5}),
        ("hm-rnn", {}),  # its slope follows the epoch
        ("character-transformer", {"batching": "shuffled", "carry": False, "auxiliary": 2}),  # layers retire
    ],
)
def test_what_a_model_carries_from_batch_to_batch_is_resumed(run, tmp_path, model, settings):
    plan = tiny_text_recipe().plan(model, overrides={"epochs": 2} | settings)
    run(plan, "whole")
    spoil = Sabotage(10, lambda parameter: parameter.data.fill_(float("nan")))  # batch 3 of epoch 2
    with pytest.raises(Exploded, match="^loss: .*nan"):
        run(plan, "spoilt", callbacks=[spoil], every_seconds=0)
    (last,) = (tmp_path / "spoilt").rglob("last.ckpt")
    assert (load_state(last)["rtx"]["states"] != [None]) is plan.settings.carry
    run(plan, "spoilt", resume=True)
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "spoilt"))
