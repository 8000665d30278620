"""torch's tools see torch's own operations. The C++ code reads memory, so it must not be chosen for them."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from rtx.models import RNN, TCN, EncoderDecoder, FeedForwardAttention, LanguageModel, RTransformer, Transformer
from rtx.tasks.build import SequenceModel

D = 8
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


@pytest.mark.parametrize("make", [lambda: RTransformer(D, 1, 2, 3), lambda: RNN(D, 1, "lstm")])
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
