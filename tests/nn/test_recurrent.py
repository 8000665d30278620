"""torch's recurrent networks under autocast; on a GPU they would otherwise compute in float16."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from rtx.models import AWDLSTM, RNN
from rtx.nn.streaming import map_state


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True


class Read(TorchFunctionMode):
    """Record the dtypes that torch's recurrent networks get, and whether autocast is on for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[set[torch.dtype], bool]] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("rnn_tanh", "gru", "lstm"):
            self.given.append(({one.dtype for one in tree_leaves(args[:3])}, torch.is_autocast_enabled("cuda")))
        return function(*args, **(kwargs or {}))


@contextmanager
def autocast_of_a_gpu(dtype: torch.dtype) -> Iterator[None]:
    """Do what `torch.autocast("cuda", dtype)` does, which torch refuses without a GPU."""
    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", before)


MODELS = {cell: lambda cell=cell: RNN(6, 2, cell) for cell in ("rnn", "gru", "lstm")}
MODELS |= {"awd-lstm": lambda: AWDLSTM(6, 2, 9), "with dropout": lambda: AWDLSTM(6, 2, 9, weight_dropout=0.3)}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_under_bfloat16_autocast_a_network_computes_in_its_own_dtype(make):
    torch.manual_seed(0)
    model, x = make(), torch.randn(2, 5, 6).as_subclass(OnGpu)
    with Read() as seen, autocast_of_a_gpu(torch.bfloat16):
        y, state = model.read(x)
        model.read(x, map_state(torch.Tensor.bfloat16, state))
        assert torch.is_autocast_enabled("cuda")
    assert y.dtype == torch.float32 and seen.given and all(one == ({torch.float32}, False) for one in seen.given)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@torch.no_grad()
def test_a_state_made_under_autocast_can_be_used_outside_it(make):
    torch.manual_seed(0)
    model, x = make().eval(), torch.randn(2, 5, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, state = model.read(x)
    assert torch.equal(model(x, state), model(x, map_state(torch.Tensor.float, state)))


def test_float16_autocast_is_left_to_torch():
    model, x = RNN(6, 1, "lstm"), torch.randn(2, 5, 6).as_subclass(OnGpu)
    with Read() as seen, autocast_of_a_gpu(torch.float16):
        model.read(x)
    assert [on for _, on in seen.given] == [True]
