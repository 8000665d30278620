"""Fixtures for tests of Triton. With this file, these tests can import `comparison` and `references`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton_process import Elsewhere, process

sys.path.append(str(Path(__file__).parents[1] / "faults"))  # for references.py


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """Call a function of a test file in a process where Triton's kernels are interpreted on the CPU."""
    pytest.importorskip("triton", reason="there is no Triton for this system")
    yield from process(True, str(tmp_path_factory.mktemp("triton")))


@pytest.fixture(scope="module")
def compiling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """Call a function in a process where Triton compiles. This needs no GPU."""
    pytest.importorskip("triton", reason="there is no Triton for this system")
    yield from process(False, str(tmp_path_factory.mktemp("triton")))
