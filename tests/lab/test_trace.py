"""`trace` shows what the bricks compute, and neither changes nor slows a model."""

import pytest
import torch

from rtx import RNN, RTransformer, Transformer
from rtx.lab import trace
from rtx.nn import LocalRNN, MultiHeadAttention, RelativeAttention


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


def test_tracing_changes_no_output_no_mode_no_random_number_and_leaves_no_hook():
    model, x = RTransformer(8, 1, 2, 3, dropout=0.5), torch.randn(1, 5, 8)
    model.blocks[0][0].eval()
    torch.manual_seed(1)
    before = model(x)
    torch.manual_seed(1)
    trace(model, x)
    assert torch.equal(model(x), before)
    assert model.training and not model.blocks[0][0].training
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_hooks_are_taken_away_also_after_an_error():
    model = Transformer(8, 1, 2)
    with pytest.raises(ValueError, match="x: expected shape"):
        trace(model, torch.randn(1, 5, 7))
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_brick_called_twice_is_shown_twice():
    layer = RelativeAttention(8, 2, clip=2)
    found = trace(torch.nn.Sequential(layer, layer), torch.randn(1, 4, 8))
    assert sorted(found) == ["0.weights", "0.weights.2"]
    assert not torch.equal(found["0.weights"], found["0.weights.2"])


def test_a_brick_inside_a_brick_that_is_looked_into_is_not_shown_twice():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.local = LocalRNN(4, 2)

        def forward(self, x):
            return self.local(x)

        def inside(self, x):
            return {"last": self.local(x)[:, -1]}

    found = trace(Outer(), torch.randn(1, 3, 4))
    assert sorted(found) == ["last", "local.states"]


def test_a_model_with_nothing_to_show_gives_nothing():
    assert trace(RNN(4), torch.randn(1, 3, 4)) == {}
