"""Checkpoints: the same network comes back; damaged files and other models are refused."""

import json
import random
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import rtx
from rtx.models import MODELS, WHOLE
from rtx.tasks.build import hyperparameter_names
from rtx.training.checkpoint import load_checkpoint, read_card, save_checkpoint
from rtx.training.evaluate import evaluate

SIZES = {"d_model": 8, "layers": 1, "heads": 2, "window": 3}


@pytest.fixture
def saved(tmp_path):
    network = rtx.build("add", "r-transformer", **SIZES).eval()
    path = tmp_path / "best.safetensors"
    save_checkpoint(path, network, "add", "r-transformer", SIZES, seed=7)
    return path, network


def test_the_same_network_comes_back_with_its_card(saved):
    path, network = saved
    x = torch.randn(2, 9, 2)
    assert torch.equal(load_checkpoint(path)(x), network(x))
    assert read_card(path) == {"task": "add", "model": "r-transformer", "hyperparameters": SIZES, "seed": 7}
    assert [p.name for p in path.parent.iterdir()] == ["best.safetensors"]


def test_a_path_may_be_text_and_a_card_may_hold_numbers_of_numpy(tmp_path):
    given = {"d_model": np.int64(4), "dropout": np.float32(0.5)}
    path = f"{tmp_path}/ein Modell für später.safetensors"
    save_checkpoint(path, rtx.build("add", "gru", **given), "add", "gru", given)
    assert read_card(path)["hyperparameters"] == {"d_model": 4, "dropout": 0.5}
    assert load_checkpoint(path).backbone.dropout.p == 0.5


def test_a_compiled_network_comes_back_as_the_network_inside(saved):
    path, network = saved
    save_checkpoint(path, torch.compile(network, backend="eager"), "add", "r-transformer", SIZES)
    x = torch.randn(2, 9, 2)
    assert torch.equal(load_checkpoint(path)(x), network(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_network_comes_back_in_its_own_precision(tmp_path, dtype):
    network = rtx.build("characters", "gru", d_model=4).to(dtype)
    save_checkpoint(tmp_path / "a.safetensors", network, "characters", "gru", {"d_model": 4})
    again = load_checkpoint(tmp_path / "a.safetensors")
    torch.testing.assert_close(again.state_dict(), network.state_dict(), rtol=0, atol=0)  # compares the dtype, too
    assert again.decoder.weight is again.embedding.weight and all(p.requires_grad for p in again.parameters())


def test_a_network_in_half_precision_is_evaluated_in_single(saved):
    path, network = saved
    save_checkpoint(path, network.bfloat16(), "add", "r-transformer", SIZES)
    found = evaluate(path, limit=20)
    save_checkpoint(path, network.float(), "add", "r-transformer", SIZES)
    assert found == evaluate(path, limit=20)


@pytest.mark.parametrize("odd", [torch.Tensor.int, torch.Tensor.bool, lambda x: x[None], lambda x: x[:0]])
def test_tensors_of_another_type_or_shape_are_refused(saved, odd):
    path, network = saved
    tensors = {name: odd(tensor) for name, tensor in network.state_dict().items()}
    save_file(tensors, path, metadata={"rtx": json.dumps(read_card(path))})
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: .*r-transformer.*expected"):
        load_checkpoint(path)


def test_a_task_that_does_not_exist_here_is_named_and_the_file_is_not_blamed(saved):
    path, network = saved
    card = read_card(path) | {"task": "unknown-task"}
    save_file(network.state_dict(), path, metadata={"rtx": json.dumps(card)})
    with pytest.raises(ValueError, match="unknown-task") as fault:
        load_checkpoint(path)
    assert "another shape" not in str(fault.value)


def test_a_network_that_the_card_does_not_describe_is_not_written(saved):
    path, network = saved
    before, wider = path.read_bytes(), SIZES | {"d_model": 16}
    for wrong in (("add", "r-transformer", wider), ("add", "gru", {"d_model": 8}), ("mine", "r-transformer", SIZES)):
        with pytest.raises(ValueError, match=re.escape(str(path))):
            save_checkpoint(path, network, *wrong)
    with pytest.raises(ValueError, match="got none|got \\("):
        save_checkpoint(path, network.backbone, "add", "r-transformer", SIZES)
    assert path.read_bytes() == before


def test_a_missing_file_a_device_and_a_file_without_a_card_are_named(tmp_path):
    save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors")
    for path in (tmp_path / "none.safetensors", "/dev/null", tmp_path, tmp_path / "other.safetensors"):
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: "):
            load_checkpoint(path)


def test_every_bit_that_changes_and_every_byte_that_is_missing_is_found(saved):
    path, draws = saved[0], random.Random(0)
    whole = path.read_bytes()
    for _ in range(100):
        place, bit = draws.randrange(len(whole)), 1 << draws.randrange(8)
        for changed in (whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :], whole[:place]):
            path.write_bytes(changed)
            with pytest.raises(ValueError, match=re.escape(str(path))):
                load_checkpoint(path)


def test_a_checkpoint_from_before_checksums_can_be_loaded(saved):
    path, network = saved
    save_file(load_file(path), path, metadata={"rtx": json.dumps(read_card(path))})
    x = torch.randn(2, 9, 2)
    assert torch.equal(load_checkpoint(path)(x), network(x))


@pytest.mark.parametrize("name", sorted(MODELS | WHOLE))
def test_every_model_comes_back(tmp_path, name):
    torch.manual_seed(0)
    sizes = {"d_model": 8, "layers": 2, "heads": 2, "window": 3, "segment": 4, "memory": 4, "d_hidden": 8}
    sizes = {k: v for k, v in sizes.items() if k in hyperparameter_names(name)}
    network, x = rtx.build("add", name, **sizes).eval(), torch.randn(2, 9, 2)
    save_checkpoint(tmp_path / "a.safetensors", network, "add", name, sizes)
    assert torch.equal(load_checkpoint(tmp_path / "a.safetensors")(x), network(x))
