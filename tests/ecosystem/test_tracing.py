"""torch's tools see torch's own operations. The C++ code reads memory, so it must not be chosen for them."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor

import rtx
from rtx.models import MCRNN, RNN, TCN, EncoderDecoder, FeedForwardAttention, LanguageModel, Transformer
from rtx.nn import LocalRNN
from rtx.tasks.build import SequenceModel

D = 8
MODELS = {
    "local-rnn": lambda: LocalRNN(D, 3),
    "r-transformer": lambda: rtx.RTransformer(D, 1, 2, 3),
    "transformer": lambda: Transformer(D, 1, 2),
    "mc-rnn": lambda: MCRNN(D),
    "tcn": lambda: TCN(D, 2, 3),
    "feed-forward-attention": lambda: FeedForwardAttention(D, D),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    return MODELS[request.param]().eval()


@torch.no_grad()
def test_a_graph_of_a_dispatch_mode_computes_the_same(model):
    x, other = torch.randn(2, 2, 5, D)
    torch.testing.assert_close(make_fx(model)(x)(other), model(other), rtol=0, atol=2e-6)


def test_fake_tensors_give_the_right_shapes_and_are_not_read():
    for make in MODELS.values():
        expected = make()(torch.randn(2, 5, D)).shape
        with FakeTensorMode():
            assert make().train()(torch.randn(2, 5, D)).shape == expected
    with FakeTensorMode():  # dropout has an implementation in C++
        assert rtx.RTransformer(D, 1, 2, 3, dropout=0.1).train()(torch.randn(2, 5, D)).shape == (2, 5, D)


WITH_NUMBERS = {  # models that check the values of tokens or lengths, and their inputs
    "language-model": (lambda: LanguageModel(Transformer(D, 1, 2), 7), [torch.randint(7, (3, 5))]),
    "encoder-decoder": (
        lambda: EncoderDecoder(7, 7, D, 1, 2),
        [torch.randint(7, (3, 5)), torch.randint(7, (3, 4)), torch.tensor([5, 1, 3])],
    ),
    "sequence-model": (
        lambda: SequenceModel(TCN(D, 2, 3), 2, 1, "sequence"),
        [torch.randn(3, 5, 2), torch.tensor([5, 1, 3])],
    ),
    "feed-forward-attention": (FeedForwardAttention, [torch.randn(3, 5, 2), torch.tensor([5, 1, 3])]),
}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_tokens_and_lengths_without_values_give_the_right_shapes(name):
    make, inputs = WITH_NUMBERS[name]
    expected = make()(*inputs).shape
    with torch.device("meta"):
        assert make()(*(x.to("meta") for x in inputs)).shape == expected
    with FakeTensorMode() as mode:
        assert make()(*map(mode.from_tensor, inputs)).shape == expected


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_gradients_of_each_sample_are_those_of_the_sample_alone(name):
    torch.manual_seed(0)
    make, inputs = WITH_NUMBERS[name]
    model = make()

    def loss(parameters, *sample):
        return functional_call(model, parameters, tuple(x[None] for x in sample)).square().sum()

    parameters = {key: value.detach() for key, value in model.named_parameters()}
    each = vmap(grad(loss), (None, *[0] * len(inputs)))(parameters, *inputs)
    for i in range(3):
        model.zero_grad()
        model(*(x[i : i + 1] for x in inputs)).square().sum().backward()
        for key, value in model.named_parameters():
            torch.testing.assert_close(each[key][i], value.grad, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_tensor_subclass_is_computed_by_its_own_rules():
    layer, x = LocalRNN(D, 3).eval(), torch.randn(2, 5, D)
    found = layer(TwoTensor(x, x + 1))
    torch.testing.assert_close(found.a, layer(x), rtol=0, atol=1e-6)
    torch.testing.assert_close(found.b, layer(x + 1), rtol=0, atol=1e-6)
    expected = layer(x)
    for name, weight in dict(layer.named_parameters()).items():  # nor are weights read as memory
        setattr(layer, name, nn.Parameter(TwoTensor(weight.data, weight.data)))
    torch.testing.assert_close(layer(x).a, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [MODELS["r-transformer"], lambda: RNN(D, 1, "lstm")])
@torch.no_grad()
def test_torchs_dynamic_quantisation_works(make):
    torch.manual_seed(0)
    model, x = make().eval(), torch.randn(2, 5, D)
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear, nn.LSTM})
    whole, state = quantised(x), None
    assert 0 < (whole - model(x)).abs().max() < 0.1
    for t in range(5):  # the rounding depends on the range of the whole input
        y, state = quantised.step(x[:, t], state)
        torch.testing.assert_close(y, whole[:, t], rtol=0, atol=0.05)
