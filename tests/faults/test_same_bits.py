"""Deterministic: the same seed on the same machine gives the same bits, here and in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from run_tiny import main
from safetensors.torch import load_file

SCRIPT = [str(Path(__file__).parents[1] / "training" / "run_tiny.py"), "losses.json"]


def words(folder: Path) -> list[str]:
    places = ["--runs", str(folder), "--results", str(folder / "results")]
    return ["train", "tiny", "r-transformer", "--seed", "5", *places]


def weights(folder: Path) -> bytes:
    """The weights that validation chose."""
    (best,) = folder.rglob("best.safetensors")
    tensors = load_file(best)
    return b"".join(name.encode() + tensors[name].view(torch.uint8).numpy().tobytes() for name in sorted(tensors))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_twice(tmp_path) -> None:
    """Another seed gives another run: tests/evidence/test_record.py."""
    environment = os.environ | {"PYTHONHASHSEED": "random", "OMP_NUM_THREADS": "1"}
    other = [sys.executable, *SCRIPT, *words(tmp_path / "a")]
    subprocess.run(other, cwd=tmp_path, check=True, env=environment, capture_output=True)
    main(words(tmp_path / "b"))
    first, second = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert first == second and len(first) > 1000
