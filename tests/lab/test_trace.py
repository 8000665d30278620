"""`trace` shows what the bricks compute, and neither changes nor slows a model."""

import pytest
import torch

from rtx import MODELS, RTransformer
from rtx.lab import trace
from rtx.nn import MultiHeadAttention, RelativeAttention
from rtx.tasks.build import hyperparameter_names


def test_every_layers_weights_and_windows_are_found_by_their_place():
    found = trace(RTransformer(8, 2, 2, 3), torch.randn(1, 5, 8))
    assert {name: tuple(array.shape) for name, array in found.items()} == {
        f"blocks.{layer}.{name}": shape
        for layer in (0, 1)
        for name, shape in (("0.sublayer.states", (1, 5, 3, 8)), ("1.sublayer.weights", (1, 2, 5, 5)))
    }


def test_weights_are_those_the_layer_uses():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
    weights = trace(layer, x)["weights"]
    heads = weights @ layer.value(x).view(1, 5, 2, 4).transpose(1, 2)
    torch.testing.assert_close(layer.output(heads.transpose(1, 2).reshape(1, 5, 8)), layer(x))


@pytest.mark.parametrize("name", MODELS)
def test_tracing_leaves_every_models_output_as_it_was(name):
    sizes = {"d_model": 8, "layers": 3, "heads": 2, "window": 3, "segment": 4, "memory": 4}
    torch.manual_seed(0)
    model = MODELS[name](**{k: v for k, v in sizes.items() if k in hyperparameter_names(name)}).eval()
    x = torch.randn(1, 9, 8)
    before = model(x)
    found = trace(model, x)
    assert all(isinstance(array, torch.Tensor) and not array.requires_grad for array in found.values())
    assert torch.equal(model(x), before)


def test_tracing_changes_no_output_no_mode_no_random_number_and_leaves_no_hook():
    model, x = RTransformer(8, 1, 2, 3, dropout=0.5), torch.randn(1, 5, 8)
    model.blocks[0][0].eval()
    torch.manual_seed(1)
    before = model(x)
    torch.manual_seed(1)
    trace(model, x)
    assert torch.equal(model(x), before)
    assert model.training and not model.blocks[0][0].training
    with pytest.raises(ValueError, match="x: "):
        trace(model, torch.randn(1, 5, 7))
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_brick_called_twice_is_shown_twice():
    layer = RelativeAttention(8, 2, clip=2)
    found = trace(torch.nn.Sequential(layer, layer), torch.randn(1, 4, 8))
    assert sorted(found) == ["0.weights", "0.weights.2"]
    assert not torch.equal(found["0.weights"], found["0.weights.2"])


@pytest.mark.parametrize("batch_first", [False, True])
def test_torchs_attention_shows_the_weights_of_each_head(batch_first):
    torch.manual_seed(0)
    layer, x = torch.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=batch_first), torch.randn(3, 5, 8)
    source = torch.randn(*((3, 4) if batch_first else (4, 5)), 8)
    padding = torch.zeros(source.shape[:2] if batch_first else source.shape[1::-1]).bool()
    padding[0, -1] = True
    expected = layer.eval()(x, source, source, padding, average_attn_weights=False)[1]
    found = trace(layer.train(), x, source, source, padding, False)  # its caller does not want weights
    torch.testing.assert_close(found, {"weights": expected})
    assert layer.training and not found["weights"][0, ..., -1].any()


def test_torchs_transformer_shows_the_weights_of_its_layers():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model, x = torch.nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 8)
    before = model(x)
    found = trace(model, x, torch.nn.Transformer.generate_square_subsequent_mask(5))
    assert sorted(found) == ["layers.0.self_attn.weights", "layers.1.self_attn.weights"]
    for weights in found.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
        assert not weights.triu(1).any()
    assert torch.equal(model(x), before)
