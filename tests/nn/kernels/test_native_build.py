"""The library of the kernels in C++: made once, found again, and done without where it cannot be made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtx.nn.kernels.native import build

needs_compiler = pytest.mark.skipif(build.obstacle() is not None, reason=f"{build.obstacle()}")
CHOICE = """
import logging, torch
logging.basicConfig(level=logging.INFO, format="%(message)s")
from rtx.nn.kernels.native import build
from rtx.nn.kernels.dropout import dropout
print(dropout.choose(torch.ones(3, 3), 0.5), build.obstacle())
"""


def choose(cache: Path, **environment: str) -> tuple[str, str]:
    """In a new process: what dropout chooses and what stands in the way of C++, and the log."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    done = subprocess.run([sys.executable, "-c", CHOICE], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr


@needs_compiler
@pytest.mark.slow
def test_it_is_made_once_for_all_processes(tmp_path):
    first, log = choose(tmp_path)
    assert first == "native None"
    assert "compiling the CPU kernels" in log
    (made,) = (tmp_path / "rtx" / "kernels").iterdir()
    second, log = choose(tmp_path)
    assert second == "native None"
    assert "compiling" not in log
    made.write_bytes(b"no library")
    third, log = choose(tmp_path)
    assert third == "native None"  # one of its own, for this process
    assert "compiling" in log


@needs_compiler
@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_a_build_and_no_more(tmp_path):
    (tmp_path / "rtx").write_text("a file, where a folder should be")
    chosen, log = choose(tmp_path)
    assert chosen == "native None"
    assert "compiling" in log


@pytest.mark.slow
def test_without_a_compiler_eager_torch_does_the_work(tmp_path):
    chosen, _ = choose(tmp_path, CXX="no-such-compiler")
    assert chosen == "fused it needs a C++ compiler, and found none of the name no-such-compiler"
    assert choose(tmp_path, CXX="")[0] == "fused it needs a C++ compiler, and CXX is set to nothing"


@pytest.mark.slow
def test_a_compiler_that_fails_is_told_by_its_first_line(tmp_path):
    broken = tmp_path / "broken c++"
    broken.write_text("#!/bin/sh\necho 'first line' >&2\necho 'second' >&2\nexit 1\n")
    broken.chmod(0o755)
    chosen, _ = choose(tmp_path / "cache", CXX=str(broken))
    assert chosen == f"fused the C++ compiler {broken} failed: first line"
    assert list((tmp_path / "cache" / "rtx" / "kernels").iterdir()) == []
