"""The fixtures of Triton's tests."""

from collections.abc import Iterator

import pytest
from triton_process import Elsewhere, process


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """Calls a function of a test file where Triton's kernels run step by step on the CPU."""
    pytest.importorskip("triton", reason="there is no Triton for this system")
    yield from process(True, str(tmp_path_factory.mktemp("triton")))


@pytest.fixture(scope="module")
def compiling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """Calls a function where Triton's compiler is used, for which no GPU is needed."""
    pytest.importorskip("triton", reason="there is no Triton for this system")
    yield from process(False, str(tmp_path_factory.mktemp("triton")))
