"""Damaged and hostile files: one error names the file, nothing in it is used or run, and its sizes reserve no memory.

The tests of checkpoints (tests/training) and of the ledger (tests/evidence) damage single files.
tests/tasks/test_data.py has archives and downloads.
"""

import json
import os
import random
import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import rtx
from rtx.tasks import data
from rtx.training.checkpoint import load_checkpoint, read_card, save_checkpoint
from rtx.training.states import load_state, save_state

SIZES = {"d_model": 8, "layers": 1, "heads": 2, "window": 3}
CARD = {"task": "add", "model": "r-transformer", "hyperparameters": SIZES}


def flips(whole: bytes, times: int = 40) -> list[bytes]:
    draws = random.Random(0)
    places = [(draws.randrange(len(whole)), 1 << draws.randrange(8)) for _ in range(times)]
    return [whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :] for i, bit in places]


def test_a_cached_file_with_a_changed_bit_gives_no_wrong_numbers(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    right = {"squares": np.arange(50) ** 2}
    data.cached_arrays("squares", lambda: right)
    path = tmp_path / "computed" / "squares.npz"
    whole = path.read_bytes()
    for changed in flips(whole, 200):
        path.write_bytes(changed)
        np.testing.assert_array_equal(data.cached_arrays("squares", lambda: right)["squares"], right["squares"])


class Trap:
    """Its pickle writes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def test_nothing_is_unpickled(tmp_path, monkeypatch) -> None:
    trap, sprung = Trap(tmp_path / "sprung"), tmp_path / "sprung"
    torch.save({"trap": trap}, tmp_path / "best.safetensors")
    with pytest.raises(ValueError, match=r"best\.safetensors: "):
        load_checkpoint(tmp_path / "best.safetensors")
    save_state(tmp_path / "last.ckpt", {"trap": trap})  # with the right checksum, too
    with pytest.raises(Exception, match="system"):
        load_state(tmp_path / "last.ckpt")
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    data.cached_arrays("trap", lambda: {"trap": np.array([trap])})
    assert data.cached_arrays("trap", dict) == {}  # the file is not used
    torch.load(tmp_path / "last.ckpt", weights_only=False)  # the trap works if pickles are allowed
    assert sprung.exists()
    sprung.unlink()
    with pytest.raises(ValueError, match=r"best\.safetensors: "):
        load_checkpoint(tmp_path / "best.safetensors")
    assert not sprung.exists()


def forged(path: Path, card: Any, text: str | None = None) -> Path:
    """Write a checkpoint with another card and without a checksum, as a forger would."""
    network = rtx.build("add", "r-transformer", **SIZES)
    save_file(network.state_dict(), path, metadata={"rtx": json.dumps(card) if text is None else text})
    return path


@pytest.mark.parametrize(
    "card",
    [
        CARD | {"hyperparameters": SIZES | {"d_model": 10**12}},
        CARD | {"hyperparameters": SIZES | {"d_model": 2**20}},
        CARD | {"hyperparameters": {"d_model": [1] * 9}},
        CARD | {"hyperparameters": 3},
        CARD | {"hyperparameters": SIZES | {"cell": {"a": 1}}},
        CARD | {"model": "transformer", "hyperparameters": {"d_model": 2**12, "layers": 9, "heads": 1}},
        CARD | {"hyperparameters": SIZES | {"heads": 0}},
        CARD | {"hyperparameters": SIZES | {"dropout": "much"}},
        CARD | {"task": 1},
        CARD | {"task_arguments": [1]},
        CARD | {"texts": [{}]},
        CARD | {"texts": [{"kind": "vocabulary"}]},
        CARD | {"task": "characters", "task_arguments": {"path": "/dev/zero"}, "texts": 5},
        {"model": "gru"},
        [],
        None,
    ],
)
def test_sizes_in_a_card_reserve_no_memory(tmp_path, card) -> None:
    path = forged(tmp_path / "best.safetensors", card)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=re.escape(str(path))):
        load_checkpoint(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_a_card_opens_no_file(tmp_path) -> None:
    """Not even the text that its vocabulary is from, which may be an endless device."""
    text = tmp_path / "text"
    text.write_text("to be or not to be, that is the question\n" * 50)
    sizes = {"d_model": 8, "layers": 1}
    task = rtx.tasks.task_by_name("characters", path=text)
    card = {"task_arguments": {"path": "/dev/zero"}, "texts": [one.to_json() for one in task.texts]}
    network, tokens = rtx.build(task, "gru", **sizes).eval(), torch.tensor([[0, 1, 2]])
    save_checkpoint(tmp_path / "a.safetensors", network, "characters", "gru", sizes, **card)
    assert torch.equal(load_checkpoint(tmp_path / "a.safetensors")(tokens), network(tokens))


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "9" * 5000, '"x"'])
def test_a_card_of_another_form_is_refused(tmp_path, text) -> None:
    with pytest.raises(ValueError, match=r"best\.safetensors: "):
        read_card(forged(tmp_path / "best.safetensors", None, text))
