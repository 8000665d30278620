"""Deterministic: the same seed on the same machine gives the same bits, twice, each time in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import hashlib, sys
sys.path.append("tests/training")
import torch
from run_tiny import main
torch.set_num_threads(1)
places = ["--runs", sys.argv[1], "--results", sys.argv[1] + "/results"]
main(["train", "tiny", "r-transformer", "--seed", sys.argv[2], *places])
"""


def digest(folder: Path, seed: int) -> bytes:
    """The weights that validation chose."""
    import torch
    from safetensors.torch import load_file

    environment = os.environ | {"PYTHONHASHSEED": "random", "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-c", RUN, folder, str(seed)], cwd=ROOT, check=True, env=environment, capture_output=True
    )
    (best,) = folder.rglob("best.safetensors")
    tensors = load_file(best)
    return b"".join(name.encode() + tensors[name].view(torch.uint8).numpy().tobytes() for name in sorted(tensors))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_twice(tmp_path) -> None:
    """Another seed gives another run: tests/evidence/test_record.py."""
    first, second = digest(tmp_path / "a", 5), digest(tmp_path / "b", 5)
    assert first == second and len(first) > 1000
