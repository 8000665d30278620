"""`trace` shows what the bricks compute, and neither changes nor slows a model."""

import pytest
import torch

from rtx import HMRNN, MCRNN, MODELS, RTransformer, TransformerXL
from rtx.lab import trace
from rtx.nn import LocalRNN, MultiHeadAttention, RelativeAttention
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


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_states_inside_a_window_are_those_of_torchs_network_run_over_it(cell):
    torch.manual_seed(0)
    layer, x = LocalRNN(4, 3, cell), torch.randn(1, 6, 4)
    network = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[cell](4, 4, batch_first=True)
    network.load_state_dict(layer.state_dict())
    found = trace(layer, x)
    assert sorted(found) == (["memories", "states"] if cell == "lstm" else ["states"])
    for t in range(2, 6):
        expected, last = network(x[:, t - 2 : t + 1])
        torch.testing.assert_close(found["states"][:, t], expected)
        if cell == "lstm":
            torch.testing.assert_close(found["memories"][:, t, -1], last[1][0])


def test_mc_rnn_shows_its_channels_their_weights_and_in_degrees():
    found = trace(MCRNN(6, 2, block=4), torch.randn(2, 7, 6))
    for layer in ("layers.0", "layers.1"):
        assert found[f"{layer}.channels"].shape == (2, 7, 3, 6)
        torch.testing.assert_close(found[f"{layer}.channel_weights"].sum(-1), torch.ones(2, 7))
        assert found[f"{layer}.in_degrees"][:4].tolist() == [[3, 2, 1], [1, 3, 2], [2, 1, 3], [3, 2, 1]]  # Eq. (1)


def test_hm_rnn_shows_its_boundaries():
    found = trace(HMRNN(6, 3), torch.randn(2, 7, 6))
    assert found["boundaries"].shape == (2, 7, 2)
    assert set(found["boundaries"].unique().tolist()) <= {0.0, 1.0}


def test_transformer_xl_shows_four_terms_that_make_up_its_weights():
    torch.manual_seed(0)
    found = trace(TransformerXL(8, 1, 2, segment=4, memory=4), torch.randn(1, 8, 8))
    terms = [array for name, array in found.items() if not name.endswith("weights")]
    (weights,) = (array for name, array in found.items() if name.endswith("weights"))
    assert len(terms) == 4
    seen = weights > 0
    assert torch.equal(seen[0, 0, 4:], torch.ones(8, 8).tril().bool()[4:])  # the second segment and its memory
    torch.testing.assert_close(sum(terms).masked_fill(~seen, -torch.inf).softmax(-1), weights)


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
