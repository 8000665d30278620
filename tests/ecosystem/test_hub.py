"""Checkpoints with their card, through huggingface_hub's mixin, from a local folder and without a network."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import rtx
from rtx.training.hub import Pretrained
from rtx.training.recipe import Recipe

SIZES = {"d_model": 8, "layers": 1, "heads": 2, "window": 3}
CARD = {"task": "add", "model": "r-transformer", "hyperparameters": SIZES, "metric": "error", "test": 0.25}


@pytest.fixture(autouse=True)
def no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_folder_holds_the_network_and_its_card(tmp_path: Path) -> None:
    network, x = rtx.build("add", "r-transformer", **SIZES).eval(), torch.randn(2, 9, 2)
    Pretrained(network, CARD).save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "config.json", "README.md"}
    assert json.loads((tmp_path / "config.json").read_text()) == CARD
    again = Pretrained.from_pretrained(tmp_path)
    assert torch.equal(again(x), network(x)) and again.card == CARD and not again.training


def test_the_checkpoint_of_a_run_has_recipe_data_and_metrics(
    recipe: Recipe, run: Callable[..., Path], tmp_path: Path
) -> None:
    run(recipe.plan("gru"), epochs=1)
    (best,) = tmp_path.rglob("best.safetensors")
    Pretrained.of(best).save_pretrained(tmp_path / "hub")
    card = Pretrained.from_pretrained(tmp_path / "hub").card
    readme = (tmp_path / "hub" / "README.md").read_text()
    assert str(card["test"]) in readme and "squared error" in readme and "license" not in readme
    assert [card[key] for key in ("recipe", "model", "data", "metric", "epoch")] == [
        *("tiny", "gru", "tiny", "squared error", 1)
    ]
    assert isinstance(card["validation"], float) and isinstance(card["test"], float) and "data_sha256" in card
