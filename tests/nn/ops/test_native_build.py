"""The C++ library: it is compiled once, found again, and other implementations do its work if it cannot be compiled.

The library of this process was really compiled. Here, a script that copies it takes the place of the compiler.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from comparison import COMPILED

from rtx.nn.ops import build
from rtx.nn.ops.attention import causal_attention

PROGRAM = """
import torch
from rtx.nn.ops import build
from rtx.nn.ops.attention import causal_attention
q = torch.ones(1, 1, 3, 4)
print(causal_attention.choose(q, q, q, 0.5), build.obstacle())
"""
pytestmark = pytest.mark.slow


def start(cache: Path, compiler: str) -> subprocess.Popen[str]:
    """Start a process that prints which implementation attention runs and why the library is missing."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache), "CXX": compiler}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=variables, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def choose(monkeypatch) -> Iterator[Callable[[Path, str], str]]:
    """Return a function that gives what such a process would print. It forgets the library of this process."""

    def forget() -> None:
        build.library.cache_clear(), build.obstacle.cache_clear()

    def chosen(cache: Path, compiler: str) -> str:
        forget()
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        monkeypatch.setenv("CXX", compiler)
        q = torch.ones(1, 1, 3, 4)
        return f"{causal_attention.choose(q, q, q, 0.5)} {build.obstacle()}"

    yield chosen
    forget()


def script(path: Path, text: str) -> Path:
    """Write a program that takes the place of a compiler."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class Compiler:
    """A compiler that writes down each call. Its last argument is the file that it makes."""

    def __init__(self, folder: Path) -> None:
        self.calls, library = folder / "calls", folder / "library"
        shutil.copyfile(build.library()._name, library)
        copy = f'for last; do :; done\n[ "$last" = --version ] || exec cp "{library}" "$last"'
        self.path = script(folder / "c++ with a log", f'echo "$@" >> "{self.calls}"\n{copy}')

    def compiles(self, run: Callable[[Path, str], str], cache: Path, command: str | None = None) -> bool:
        """Choose an implementation of attention; return whether that compiled the library."""
        self.calls.write_text("")
        assert run(cache, command or str(self.path)) == "native None"
        return "-shared" in self.calls.read_text()


def in_a_new_process(cache: Path, compiler: str) -> str:
    process = start(cache, compiler)
    printed, _ = process.communicate()
    assert process.returncode == 0
    return printed.strip()


@COMPILED
def test_the_library_is_compiled_once_for_all_processes(tmp_path, choose):
    compiler, cache = Compiler(tmp_path), tmp_path / "cache"
    assert compiler.compiles(in_a_new_process, cache)
    assert len(list((cache / "rtx" / "ops").iterdir())) == 1  # the library
    assert not compiler.compiles(choose, cache)


@COMPILED
def test_the_compiler_may_be_a_command_with_arguments(tmp_path, choose):
    wrapper, log = script(tmp_path / "wrapper", 'shift; exec "$@"'), Compiler(tmp_path)
    assert log.compiles(choose, tmp_path / "cache", f"{wrapper} -x {shlex.quote(str(log.path))}")
    with pytest.raises(build.BuildError, match='^CXX: .*"c'):
        build.find_compiler('"c')


def test_a_compiler_that_cannot_run_is_one_clear_obstacle(tmp_path, monkeypatch):
    broken = tmp_path / "c++"
    broken.write_bytes(b"\x00not a program")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(build.BuildError, match="c\\+\\+"):
        build.library.__wrapped__()


@COMPILED
def test_a_cache_folder_that_cannot_be_written_costs_one_build(tmp_path, choose):
    (tmp_path / "rtx").write_text("a file with the name of the folder")
    assert Compiler(tmp_path).compiles(choose, tmp_path)


@pytest.mark.parametrize(("compiler", "named"), [("no-such-compiler", "no-such-compiler"), ("", "CXX")])
def test_without_a_compiler_torch_does_the_work(tmp_path, choose, compiler, named):
    chosen, reason = choose(tmp_path, compiler).split(" ", 1)
    assert chosen == "blocks" and named in reason


def test_a_compiler_that_fails_leaves_no_file_and_its_first_line_is_the_reason(tmp_path, choose):
    broken = script(tmp_path / "broken c++", "printf 'f\\351rst line\\n' >&2\necho 'second' >&2\nexit 1")  # not UTF-8
    chosen, reason = choose(tmp_path / "cache", str(broken)).split(" ", 1)
    assert chosen == "blocks" and "broken c++" in reason and reason.endswith("rst line")
    assert list((tmp_path / "cache" / "rtx" / "ops").iterdir()) == []
