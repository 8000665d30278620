"""The C++ library: it is compiled once, found again, and other implementations do its work if it cannot be compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from comparison import COMPILED

from rtx.nn.ops import build

PROGRAM = """
import torch
from rtx.nn.ops import build
from rtx.nn.ops.attention import causal_attention
q = torch.ones(1, 1, 3, 4)
print(causal_attention.choose(q, q, q, 0.5), build.obstacle())
"""
pytestmark = pytest.mark.slow


def choose(cache: Path, compiler: str) -> str:
    """Return, from a new process, which implementation attention runs and why the library is missing."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache), "CXX": compiler}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Compiler:
    """A compiler that writes down each call."""

    def __init__(self, folder: Path) -> None:
        self.path, self.calls = folder / "c++ with a log", folder / "calls"
        real = build.find_compiler(os.environ.get("CXX"))
        self.path.write_text(f'#!/bin/sh\necho "$@" >> "{self.calls}"\nexec "{real}" "$@"\n')
        self.path.chmod(0o755)

    def compiles(self, cache: Path) -> bool:
        """Run attention in a new process; return whether that compiled the library."""
        self.calls.write_text("")
        assert choose(cache, str(self.path)) == "native None"
        return "-shared" in self.calls.read_text()


@COMPILED
def test_the_library_is_compiled_once_for_all_processes(tmp_path):
    compiler, cache = Compiler(tmp_path), tmp_path / "cache"
    assert compiler.compiles(cache)
    (library,) = (cache / "rtx" / "ops").iterdir()
    assert not compiler.compiles(cache)
    library.write_bytes(b"damaged")
    assert compiler.compiles(cache)  # into a folder of this process


@COMPILED
def test_a_cache_folder_that_cannot_be_written_costs_one_build(tmp_path):
    (tmp_path / "rtx").write_text("a file with the name of the folder")
    assert Compiler(tmp_path).compiles(tmp_path)


@pytest.mark.parametrize(("compiler", "named"), [("no-such-compiler", "no-such-compiler"), ("", "CXX")])
def test_without_a_compiler_torch_does_the_work(tmp_path, compiler, named):
    chosen, reason = choose(tmp_path, compiler).split(" ", 1)
    assert chosen == "fused" and named in reason


def test_a_compiler_that_fails_leaves_no_file_and_its_first_line_is_the_reason(tmp_path):
    broken = tmp_path / "broken c++"
    broken.write_text("#!/bin/sh\necho 'first line' >&2\necho 'second' >&2\nexit 1\n")
    broken.chmod(0o755)
    chosen, reason = choose(tmp_path / "cache", str(broken)).split(" ", 1)
    assert chosen == "fused" and str(broken) in reason and reason.endswith("first line")
    assert list((tmp_path / "cache" / "rtx" / "ops").iterdir()) == []
