"""Facts of the plain LocalRNN, of the choice of an implementation, and of the build that were once wrong."""

import pytest
import torch

from rtx.nn import LocalRNN, implementation
from rtx.nn.ops import build
from rtx.nn.ops.local_rnn import local_rnn
from rtx.nn.ops.local_rnn import torch as plain


def test_a_trace_takes_another_batch_size(monkeypatch):
    monkeypatch.setattr(plain, "GROUP", 2 * 6 * 4)
    layer = LocalRNN(4, 3)
    with implementation("torch"):
        traced = torch.jit.trace(layer, torch.randn(1, 6, 4), check_trace=False)
    x = torch.randn(5, 6, 4)
    torch.testing.assert_close(traced(x), layer(x), rtol=0, atol=1e-5)


def test_blocks_that_end_in_another_order_keep_the_choice_of_the_open_one():
    layer, x = LocalRNN(4, 3), torch.randn(1, 5, 4)
    arguments = (x, *layer._weights(), 3, "gru")
    usual = local_rnn.choose(*arguments)
    first, second = implementation("reference", "local_rnn"), implementation("torch", "local_rnn")
    first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    assert local_rnn.choose(*arguments) == "torch"
    second.__exit__(None, None, None)
    assert local_rnn.choose(*arguments) == usual


def test_a_compiler_that_cannot_run_is_one_clear_obstacle(tmp_path, monkeypatch):
    broken = tmp_path / "c++"
    broken.write_bytes(b"\x00not a program")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(build.BuildError, match="c\\+\\+"):
        build.library.__wrapped__()
