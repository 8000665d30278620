"""torch's networks, and the shorter way for one step of an LSTM: the same numbers, and no packing of weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from rtx.models.awd_lstm import AWDLSTM
from rtx.models.rnn import RNN
from rtx.nn.recurrent import read_network
from rtx.nn.state import map_state

PACKING = "aten.mkldnn_rnn_layer"


class Called(TorchDispatchMode):
    """The names of the operations that torch does meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


def called(run) -> set[str]:
    with Called() as seen, torch.no_grad():
        run()
    return seen.names


@pytest.mark.parametrize("make", [lambda: RNN(6, 2, "lstm"), lambda: AWDLSTM(6, 2, 9)])
def test_a_step_of_an_lstm_packs_no_weights(make):
    model, x = make().eval(), torch.randn(2, 5, 6)
    assert PACKING not in called(lambda: model.step(x[:, 0]))
    if torch.backends.mkldnn.is_available():  # else torch packs none anywhere
        assert PACKING in called(lambda: model(x))


@pytest.mark.parametrize("network", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("started", [False, True])
def test_one_step_is_what_the_network_gives(network, started):
    torch.manual_seed(0)
    own, x = network(5, 7, 3, batch_first=True).double().eval(), torch.randn(4, 1, 5, dtype=torch.float64)
    _, state = own(torch.randn(4, 3, 5, dtype=torch.float64))
    given = state if started else None
    torch.testing.assert_close(read_network(own, x, given), own(x, given), rtol=0, atol=1e-12)


def test_gradients_of_a_step_are_the_networks():
    torch.manual_seed(0)
    own, x = nn.LSTM(5, 7, 2, batch_first=True).double().eval(), torch.randn(4, 1, 5, dtype=torch.float64)
    grads = [
        torch.autograd.grad(run(x)[0].square().sum(), list(own.parameters()))
        for run in (own, lambda x: read_network(own, x, None))
    ]
    torch.testing.assert_close(*grads, rtol=0, atol=1e-12)


def test_a_step_in_training_drops_between_the_layers():
    torch.manual_seed(0)
    model = RNN(64, 2, "lstm", dropout=0.5)
    model.dropout.p = 0.0  # that behind the last layer
    x, state = torch.randn(1, 64), None
    first, second = (model.step(x, state)[0] for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("make", [lambda: RNN(6, 2, "lstm"), lambda: AWDLSTM(6, 2, 9)])
def test_under_autocast_a_step_has_the_dtype_of_a_text(make):
    model, x = make().eval(), torch.randn(2, 5, 6)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        text, state = model.read(x)
        first, then = (model.step(x[:, 0], given)[0] for given in (None, state))
    assert first.dtype == then.dtype == text.dtype


class OnGpu(torch.Tensor):
    """Says that it is on a GPU."""

    is_cuda = True


class Read(TorchFunctionMode):
    """The dtypes of what torch's recurrent networks are given, and whether autocast would round it on a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[set[torch.dtype], bool]] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("rnn_tanh", "gru", "lstm"):
            x, state, weights = args[:3]
            parts = [x, *(state if isinstance(state, tuple) else [state]), *weights]
            self.given.append(({one.dtype for one in parts}, torch.is_autocast_enabled("cuda")))
        return function(*args, **(kwargs or {}))


@contextmanager
def autocast_of_a_gpu(dtype: torch.dtype) -> Iterator[None]:
    """As `torch.autocast("cuda", dtype)`, which is refused where there is no GPU."""
    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", before)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda cell=cell: RNN(6, 2, cell) for cell in ("rnn", "gru", "lstm")),
        lambda: AWDLSTM(6, 2, 9),
        lambda: AWDLSTM(6, 2, 9, weight_dropout=0.3),
    ],
    ids=["rnn", "gru", "lstm", "awd-lstm", "awd-lstm with weight dropout"],
)
def test_on_a_gpu_autocast_in_bfloat16_leaves_a_network_in_its_own_dtype(make):
    """Else torch would have cuDNN compute in float16, and nothing scales the gradients for that."""
    torch.manual_seed(0)
    model, x = make(), torch.randn(2, 5, 6).as_subclass(OnGpu)
    with Read() as seen, autocast_of_a_gpu(torch.bfloat16):
        y, state = model.read(x)
        model.read(x, map_state(torch.Tensor.bfloat16, state))
        assert torch.is_autocast_enabled("cuda")
    assert y.dtype == torch.float32 and seen.given and all(one == ({torch.float32}, False) for one in seen.given)


def test_on_a_gpu_autocast_in_float16_is_left_to_torch():
    model, x = RNN(6, 1, "lstm"), torch.randn(2, 5, 6).as_subclass(OnGpu)
    with Read() as seen, autocast_of_a_gpu(torch.float16):
        model.read(x)
    assert [on for _, on in seen.given] == [True]
