"""Checkpoints: the same network comes back; damage and other models are refused."""

import pytest
import torch

import rtx
from rtx.training.checkpoint import load_checkpoint, read_card, save_checkpoint

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
    assert torch.equal(load_checkpoint(path, "r-transformer")(x), network(x))
    assert read_card(path) == {"task": "add", "model": "r-transformer", "hyperparameters": SIZES, "seed": 7}
    assert [p.name for p in path.parent.iterdir()] == ["best.safetensors"]


def test_another_models_checkpoint_is_refused(saved):
    with pytest.raises(ValueError, match="expected a checkpoint of gru, got one of r-transformer"):
        load_checkpoint(saved[0], "gru")


@pytest.mark.parametrize("keep", [0, 5, 100, 0.5, -1])
def test_a_truncated_checkpoint_is_refused(saved, keep):
    path, _ = saved
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match="the file is damaged or another kind"):
        load_checkpoint(path)


def test_a_file_without_a_card_is_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="expected a checkpoint of rtx"):
        load_checkpoint(tmp_path / "other.safetensors")


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.safetensors: there is no such checkpoint"):
        load_checkpoint(tmp_path / "none.safetensors")


def test_tensors_of_another_size_are_refused(saved):
    path, network = saved
    save_checkpoint(path, network, "add", "r-transformer", SIZES | {"d_model": 16})
    with pytest.raises(ValueError, match="do not fit r-transformer"):
        load_checkpoint(path)
