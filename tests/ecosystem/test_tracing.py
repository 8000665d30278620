"""What torch's tools look at is torch's own operations: the kernels in C++ read memory, and would show them nothing."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

import rtx
from rtx.models import MCRNN, RNN, TCN, FeedForwardAttention, Transformer
from rtx.nn import LocalRNN
from rtx.nn.kernels.dispatch import implementation

D = 8
MODELS = {
    "local-rnn": lambda: LocalRNN(D, 3),
    "r-transformer": lambda: rtx.RTransformer(D, 1, 2, 3),
    "transformer": lambda: Transformer(D, 1, 2),
    "mc-rnn": lambda: MCRNN(D),
    "tcn": lambda: TCN(D, 2, 3),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    return MODELS[request.param]().eval()


@torch.no_grad()
def test_a_traced_model_computes_the_same_also_when_it_was_saved(model, tmp_path):
    x, other = torch.randn(2, 2, 5, D)
    torch.jit.trace(model, x).save(tmp_path / "traced.pt")
    torch.testing.assert_close(torch.jit.load(tmp_path / "traced.pt")(other), model(other), rtol=0, atol=2e-6)


@torch.no_grad()
def test_feed_forward_attention_is_traced(tmp_path):
    model = FeedForwardAttention().eval()
    x, other = torch.randn(2, 2, 5, 2)
    torch.jit.trace(model, x).save(tmp_path / "traced.pt")
    torch.testing.assert_close(torch.jit.load(tmp_path / "traced.pt")(other), model(other), rtol=0, atol=2e-6)


@torch.no_grad()
def test_a_graph_of_a_dispatch_mode_computes_the_same(model):
    x, other = torch.randn(2, 2, 5, D)
    torch.testing.assert_close(make_fx(model)(x)(other), model(other), rtol=0, atol=2e-6)


def test_fake_tensors_have_the_shapes_and_are_not_read():
    for make in MODELS.values():
        with FakeTensorMode():
            assert make().train()(torch.randn(2, 5, D)).shape == (2, 5, D)
    with FakeTensorMode():
        assert rtx.RTransformer(D, 1, 2, 3, dropout=0.1).train()(torch.randn(2, 5, D)).shape == (2, 5, D)


@torch.no_grad()
def test_a_tensor_of_another_kind_is_computed_by_its_own_rules():
    layer, x = LocalRNN(D, 3).eval(), torch.randn(2, 5, D)
    found = layer(TwoTensor(x, x + 1))
    torch.testing.assert_close(found.a, layer(x), rtol=0, atol=1e-6)
    torch.testing.assert_close(found.b, layer(x + 1), rtol=0, atol=1e-6)


@torch.no_grad()
def test_a_weight_of_another_kind_is_not_read_as_memory():
    layer, x = LocalRNN(D, 3).eval(), torch.randn(2, 5, D)
    expected = layer(x)
    for name, weight in dict(layer.named_parameters()).items():
        setattr(layer, name, nn.Parameter(TwoTensor(weight.data, weight.data)))
    torch.testing.assert_close(layer(x).a, expected, rtol=0, atol=1e-6)


@torch.no_grad()
def test_a_counter_of_operations_sees_them_all():
    model, x = FeedForwardAttention(), torch.randn(2, 5, 2)
    with FlopCounterMode(display=False) as counter:
        model(x)
    with FlopCounterMode(display=False) as plain, implementation("torch"):
        model(x)
    assert counter.get_total_flops() == plain.get_total_flops()


@pytest.mark.parametrize("make", [MODELS["r-transformer"], lambda: RNN(D, 1, "lstm")])
@torch.no_grad()
def test_torchs_dynamic_quantisation_takes_them(make):
    torch.manual_seed(0)
    model, x = make().eval(), torch.randn(2, 5, D)
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear, nn.LSTM})
    assert 0 < (quantised(x) - model(x)).abs().max() < 0.1
