"""Checkpoints of runs in training: damage is found, the one before is used, nothing bad is kept."""

import logging
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from test_survival import assert_same, numbers
from tiny_recipe import TASKS as TINY
from tiny_recipe import tiny_text_recipe

from rtx.evidence.record import train
from rtx.tasks import TASKS
from rtx.training.fit import new_trainee
from rtx.training.randomness import LARGEST_SEED, check_seed, of_process, random_state, set_random_state
from rtx.training.states import Checkpoints, load_state, previous, save_state, to_device

STATE = {"weights": torch.randn(100), "place": (1, 2.5, None, float("inf")), "text": "a"}


@pytest.fixture
def run(tmp_path):
    def start(plan, name="a", **options):
        cpu = {"accelerator": "cpu", "enable_progress_bar": False, "runs": tmp_path / name}
        return train(plan, results=tmp_path / name / "results", **(cpu | options))

    return start


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
    assert_same(torch.load(path, weights_only=True), STATE)
    for _ in range(50):
        place, bit = draws.randrange(len(whole)), 1 << draws.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"a\.ckpt: the checkpoint is damaged"):
            load_state(path)
        path.write_bytes(whole[: draws.randrange(len(whole))])
        with pytest.raises(ValueError, match=r"a\.ckpt: the checkpoint is damaged"):
            load_state(path)


def test_the_newest_two_checkpoints_are_kept(tmp_path):
    path = tmp_path / "last.ckpt"
    for number in range(3):
        Checkpoints().save_checkpoint({"number": number}, path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["last.ckpt", "previous.ckpt"]
    assert load_state(path) == {"number": 2} and load_state(previous(path)) == {"number": 1}


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (print, ("run",))

    save_state(tmp_path / "a.ckpt", {"trap": Trap()})
    with pytest.raises(Exception, match="print"):
        load_state(tmp_path / "a.ckpt")


def test_a_models_state_goes_through_a_file(tmp_path):
    keys, values = torch.randn(2, 1, 8, 3), torch.randn(2, 1, 8, 3)
    state = (torch.randn(2, 3), 4, ((keys, values), None))
    save_state(tmp_path / "a.ckpt", {"state": to_device(state, "cpu")})
    assert_same(load_state(tmp_path / "a.ckpt")["state"], state)


def test_a_carried_state_comes_back_where_the_run_computes(recipe):
    """Lightning reads a checkpoint while the model is still on the CPU."""
    trainee, state = new_trainee(recipe.plan("gru"), 0), (torch.zeros(2, 1, 3),)
    facts = {"card": trainee.card, "precision": "32-true", "live": 1, "observed": [], "states": [state]}
    strategy = SimpleNamespace(root_device=torch.device("meta"))
    trainee.trainer = SimpleNamespace(precision="32-true", max_epochs=3, strategy=strategy)
    trainee.on_load_checkpoint({"rtx": facts, "epoch": 1})
    assert trainee.device.type == "cpu" and trainee.state[0].device.type == "meta"


def test_every_generator_goes_on_where_it_was(tmp_path):
    def draw():
        return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(3)

    random.gauss(0, 1), np.random.randn()  # each keeps a second number for later
    save_state(tmp_path / "a.ckpt", {"random": random_state(torch.device("cpu"))})
    first = draw()
    draw()
    set_random_state(load_state(tmp_path / "a.ckpt")["random"], torch.device("cpu"))
    assert_same(draw(), first)


def damage(path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_damaged_checkpoint_gives_way_to_the_one_before_and_that_is_said(recipe, run, tmp_path, caplog):
    plan = recipe.plan("r-transformer")
    run(plan, "whole")
    run(plan, "hurt", epochs=2)
    (last,) = (tmp_path / "hurt").rglob("last.ckpt")
    (tmp_path / "hurt" / "results").rename(tmp_path / "hurt" / "earlier")
    damage(last)
    with caplog.at_level(logging.WARNING, "rtx"):
        run(plan, "hurt", resume=True)
    assert re.search(
        r"last\.ckpt: the checkpoint is damaged.*going on from the one before, .*previous\.ckpt", caplog.text
    )
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "hurt"))


def test_where_both_checkpoints_are_damaged_the_run_is_not_begun_again(recipe, run, tmp_path):
    plan = recipe.plan("gru")
    run(plan, epochs=2)
    (last,) = tmp_path.rglob("last.ckpt")
    damage(last)
    damage(previous(last))
    with pytest.raises(
        ValueError, match=r"resume: no checkpoint is left .*last.*damaged.*previous.*damaged.*; remove "
    ):
        run(plan, resume=True)


def test_a_crash_between_the_two_names_leaves_the_one_before(recipe, run, tmp_path):
    plan = recipe.plan("gru")
    run(plan, "whole")
    run(plan, "cut", epochs=2)
    (last,) = (tmp_path / "cut").rglob("last.ckpt")
    (tmp_path / "cut" / "results").rename(tmp_path / "cut" / "earlier")
    last.unlink()
    run(plan, "cut", resume=True)
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "cut"))


def test_a_loss_that_becomes_nan_stops_the_run_and_leaves_the_last_good_checkpoint(recipe, run, tmp_path):
    plan = recipe.plan("gru")
    run(plan, "whole")
    spoil = Sabotage(10, lambda parameter: parameter.data.fill_(float("nan")))
    said = r"loss: became nan at step 10, learning rate 0\.01, last gradient norm \d+\.\d+"
    with pytest.raises(ValueError, match=said):
        run(plan, "spoilt", callbacks=[spoil])
    (last,) = (tmp_path / "spoilt").rglob("last.ckpt")
    assert load_state(last)["global_step"] == 8
    run(plan, "spoilt", resume=True)
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "spoilt"))


def test_a_gradient_that_becomes_infinite_stops_the_run_before_the_update(recipe, run, tmp_path):
    plan = recipe.plan("gru")
    run(plan, "whole")
    spoil = Sabotage(10, lambda parameter: parameter.register_hook(lambda g: g / 0))
    with pytest.raises(ValueError, match=r"gradient norm: became (nan|inf) at step 10, learning rate 0\.01"):
        run(plan, "spoilt", callbacks=[spoil], every_steps=1)
    (last,) = (tmp_path / "spoilt").rglob("last.ckpt")
    assert load_state(last)["global_step"] == 10
    run(plan, "spoilt", resume=True)
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "spoilt"))


def test_weights_that_are_not_finite_are_never_saved(recipe, run, tmp_path):
    class Overflow(Callback):
        def on_train_batch_end(self, trainer, module, *_) -> None:
            if trainer.global_step == 10:
                next(module.parameters()).data.fill_(float("inf"))

    with pytest.raises(ValueError, match=r"model\.\S+: became NaN or infinite before step 10; \S*last\.ckpt is from"):
        run(recipe.plan("gru"), callbacks=[Overflow()], every_steps=1)
    (last,) = tmp_path.rglob("last.ckpt")
    assert load_state(last)["global_step"] == 9


def test_a_run_that_stopped_early_does_not_go_on(recipe, run, tmp_path):
    plan = recipe.plan("gru", overrides={"epochs": 50, "learning_rate": 3.0, "stop_after": 1})
    first = run(plan)
    before = numbers(tmp_path / "a")
    assert before["last"]["epoch"] < 50
    assert run(plan, resume=True) == first  # the same entry of the ledger
    assert_same(numbers(tmp_path / "a"), before)


def test_a_fresh_run_in_the_folder_of_a_finished_one_forgets_it(recipe, run, tmp_path):
    plan = recipe.plan("gru")
    run(plan)

    class Crash(Callback):
        def on_train_start(self, *_) -> None:
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        run(plan, callbacks=[Crash()])
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".ckpt", ".safetensors")] == []


@pytest.mark.parametrize("model", ["lstm", "transformer-xl"])
def test_the_state_carried_through_a_text_is_resumed_with_it(run, tmp_path, model, monkeypatch):
    for name, task in TINY.items():
        monkeypatch.setitem(TASKS, name, task)
    plan = tiny_text_recipe().plan(model)
    run(plan, "whole")
    spoil = Sabotage(18, lambda parameter: parameter.data.fill_(float("nan")))  # batch 3 of epoch 3
    with pytest.raises(ValueError, match="loss: became nan"):
        run(plan, "spoilt", callbacks=[spoil], every_steps=1)
    (last,) = (tmp_path / "spoilt").rglob("last.ckpt")
    assert load_state(last)["rtx"]["states"] != [None]
    run(plan, "spoilt", resume=True)
    assert_same(numbers(tmp_path / "whole"), numbers(tmp_path / "spoilt"))


def test_every_process_has_a_seed_of_its_own_that_all_generators_take():
    for seed in (0, 7, LARGEST_SEED):
        seeds = [of_process(seed, rank) for rank in range(64)]
        assert seeds[0] == seed and len(set(seeds)) == 64
        assert [check_seed("seed", one) for one in seeds] == seeds
