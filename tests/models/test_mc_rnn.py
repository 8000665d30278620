"""MC-RNN against loops over its equations, torch's own networks, and the paper's figures and claims."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import assert_same, count
from references import mc_rnn_layer
from torch.nn import functional as F

from rtx.models import MCRNN
from rtx.nn import reference
from rtx.nn.multi_channel import MultiChannelRNN

TORCH = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
SWITCHES = {"start": ("equation", "clipped"), "phase": ("equation", "text")}
WAYS = [dict(zip(SWITCHES, values, strict=True)) for values in itertools.product(*SWITCHES.values())]


def layer_of(*args, **options) -> MultiChannelRNN:
    torch.manual_seed(0)
    return MultiChannelRNN(*args, **options).double()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
@pytest.mark.parametrize("cell", TORCH)
def test_outputs_and_gradients_of_a_layer_are_those_of_equations_1_to_6(cell, way):
    layer = layer_of(2, 3, 4, cell, mapping_start="uniform", **way)
    x = torch.randn(2, 6, 2, dtype=torch.float64, requires_grad=True)
    expected, weights = mc_rnn_layer(layer, x)
    assert_same(layer(x)[0], expected, [x, *layer.parameters()])
    torch.testing.assert_close(layer.introspect(x)["channel_weights"], weights, rtol=0, atol=1e-10)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
@pytest.mark.parametrize("cell", TORCH)
def test_one_channel_is_torchs_network(cell, way):
    layer = layer_of(3, 4, 2, cell, **way)
    network = TORCH[cell](3, 4, batch_first=True).double()
    network.load_state_dict({name: getattr(layer, name) for name in network.state_dict()})
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    ours = [x, *(getattr(layer, name) for name, _ in network.named_parameters())]
    assert_same(layer(x)[0], network(x)[0], ours, [x, *network.parameters()])


@given(block=st.integers(2, 9), t=st.integers(1, 60), phase=st.sampled_from(SWITCHES["phase"]))
def test_in_degrees_count_the_earlier_nodes_of_the_block(block, t, phase):
    layer = MultiChannelRNN(1, block=block, phase=phase)
    lengths = [t - reference.block_start(t, k, block, phase) for k in range(1, block)]
    assert layer.in_degrees(1, t - 1).tolist() == [lengths]
    assert sorted(lengths) == list(range(1, block))  # at each step there is a channel for every length


def test_figure_2_has_the_phase_of_the_equation():
    """Channels 1, 2, 3 show 3-, 2- and 4-word patterns, and a step later 4-, 3- and 2-word patterns."""
    for phase, found in (("equation", True), ("text", False)):
        rows = (MultiChannelRNN(1, phase=phase).in_degrees(9) + 1).tolist()
        assert ([[3, 2, 4], [4, 3, 2]] in [rows[i : i + 2] for i in range(8)]) is found


@pytest.mark.parametrize(("word", "channel", "before"), [(4, 2, 2), (8, 2, 3), (12, 2, 1), (2, 1, 1)])
def test_figure_3_joins_the_phrases_that_the_paper_names(word, channel, before):
    """champions have been · few and far between · Italian Open · home-grown champions"""
    assert MultiChannelRNN(1).in_degrees(13)[word - 1, channel - 1] == before


def test_parameters_above_the_baseline_of_table_2():
    """Two encoder and two decoder layers of 256. The table prints 4 M more with three channels."""
    ours = count(*(MCRNN(256, layers=2) for _ in range(2)))
    assert ours - count(*(torch.nn.LSTM(256, 256, 2) for _ in range(2))) == 1_311_744


def test_parameters_start_as_torchs_do():
    torch.manual_seed(0)
    layer = MultiChannelRNN(40, 25, mapping_start="uniform")
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_block"):
        assert 0.19 < getattr(layer, name).abs().max() <= 0.2, name  # 1 / √25


def test_introspect_returns_the_channels_and_weights_of_the_output_without_dropout():
    layer, x = layer_of(3, 4, weight_dropout=0.5), torch.randn(2, 7, 3, dtype=torch.float64)
    _, state = layer.eval()(x[:, :2])
    y = layer(x[:, 2:], state)[0]
    shown = layer.train().introspect(x[:, 2:], state)
    torch.testing.assert_close((shown["channel_weights"][..., None] * shown["channels"]).sum(2), y)
    torch.testing.assert_close(shown["channel_weights"].sum(-1), torch.ones(2, 5).double())
    assert torch.equal(shown["in_degrees"], layer.in_degrees(7)[2:])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_attention_learns_under_autocast_from_small_differences_of_the_channels(cell):
    torch.manual_seed(0)
    layer, x, pull = MultiChannelRNN(128, cell=cell), 0.1 * torch.randn(4, 20, 128), torch.randn(4, 20, 128)
    learns = list(layer.attention_v.parameters()) + list(layer.attention_r.parameters())
    expected = torch.autograd.grad((layer(x)[0] * pull).sum(), learns)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)[0]
    for ours, theirs in zip(torch.autograd.grad((y * pull).sum(), learns), expected, strict=True):
        assert (ours - theirs).norm() < 0.15 * theirs.norm()


@pytest.mark.parametrize(("on", "names"), [("all", ["weight_block", "weight_hh_l0"]), ("cell", ["weight_hh_l0"])])
def test_weight_dropout_hides_the_same_recurrent_weights_at_all_steps_of_a_call(on, names):
    layer = layer_of(3, 4, weight_dropout=0.5, weight_dropout_on=on)
    x = torch.randn(2, 9, 3, dtype=torch.float64)
    torch.manual_seed(1)
    y = layer(x)[0]
    torch.manual_seed(1)
    hidden = {name: F.dropout(getattr(layer, name).data, 0.5) for name in names}
    plain = layer_of(3, 4)
    plain.load_state_dict(layer.state_dict() | hidden)
    torch.testing.assert_close(y, plain(x)[0], rtol=0, atol=1e-12)
    assert (layer.eval()(x)[0] - y).abs().max() > 1e-3


def test_dropout_is_between_the_layers_too_unless_dropout_hidden_is_given():
    torch.manual_seed(0)
    model, seen = MCRNN(64, layers=2, dropout=0.5), []
    model.layers[1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(torch.randn(2, 5, 64))
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6


def test_the_two_phases_are_the_same_up_to_blocks_of_3_and_swap_channels_2_and_3_at_4():
    for block, order in ((2, [0]), (3, [0, 1]), (4, [0, 2, 1])):
        equation, text = (layer_of(2, block=block, phase=phase) for phase in SWITCHES["phase"])
        assert torch.equal(text.in_degrees(20), equation.in_degrees(20)[:, order])
        x = torch.randn(1, 9, 2, dtype=torch.float64)
        torch.testing.assert_close(text.channels(x), equation.channels(x)[:, :, order], rtol=0, atol=1e-12)


def test_the_two_starts_differ_in_the_first_steps_only():
    equation, clipped = (MultiChannelRNN(2, start=start) for start in SWITCHES["start"])
    assert equation.in_degrees(4).tolist() == [[3, 2, 1], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
    assert clipped.in_degrees(4).tolist() == [[0, 0, 0], [1, 1, 1], [2, 1, 2], [3, 2, 1]]
    assert torch.equal(equation.in_degrees(30, 3), clipped.in_degrees(30, 3))


def test_a_path_can_be_longer_than_the_papers_bound():
    """The paper says at most l // (n - 1) + 1, which is 1 at n = 4 and l = 2. Where a block ends in between it is 2."""
    n, distance = 4, 2
    found = [d[distance - 1] for d in path_lengths(n, 8)[7]]
    assert sorted(found) == [1, 1, 2]
    assert max(found) > distance // (n - 1) + 1


def path_lengths(block: int, steps: int) -> list[list[list[int]]]:
    """Measure d[t][k][l - 1]: ∂h_t^k / ∂x_{t-l} falls with this power of ε if all W_j = ε."""

    def slopes(epsilon: float) -> torch.Tensor:
        layer = MultiChannelRNN(1, block=block, cell="rnn").double()
        state = {name: torch.zeros_like(value) for name, value in layer.state_dict().items()}
        state["weight_ih_l0"][:], state["weight_hh_l0"][:], state["weight_block"][:] = 1.0, 1.0, epsilon
        layer.load_state_dict(state)
        x = torch.zeros(1, steps, 1, dtype=torch.float64, requires_grad=True)
        states = layer.channels(x)[0, :, :, 0]
        rows = [[torch.autograd.grad(h, x, retain_graph=True)[0][0, :, 0] for h in h_t] for h_t in states]
        return torch.stack([torch.stack(row) for row in rows])  # (T, C, T)

    power = (slopes(1e-3) / slopes(1e-4)).log10()
    return [
        [[round(power[t, k, t - d].item()) for d in range(1, t + 1)] for k in range(block - 1)] for t in range(steps)
    ]


@pytest.mark.parametrize("block", [2, 3, 4, 5])
def test_paths_of_gradients_have_exactly_these_lengths(block):
    n, lengths = block, path_lengths(block, 15)
    for t, distance in itertools.product(range(15), range(1, 11)):
        if distance > t:
            continue
        found = [d[distance - 1] for d in lengths[t]]
        assert min(found) == math.ceil(distance / (n - 1))
        assert max(found) == (1 if distance == 1 else (distance - 2) // (n - 1) + 2)
