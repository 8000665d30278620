"""MC-RNN against loops from its equations, torch's own networks, and the paper's figures and claims."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from rtx.models import MCRNN
from rtx.nn import naive_recurrent as naive
from rtx.nn.multi_channel import MultiChannelRNN

TORCH = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
SWITCHES = {
    "start": ("equation", "clipped"),
    "phase": ("equation", "text"),
    "cell_state": ("mean", "previous", "mapped"),
    "mapping": ("shared", "per-gate"),
}
WAYS = [dict(zip(SWITCHES, values, strict=True)) for values in itertools.product(*SWITCHES.values())]


def layer_of(*args, **options) -> MultiChannelRNN:
    torch.manual_seed(0)
    return MultiChannelRNN(*args, **options).double()


def twin(layer: MultiChannelRNN, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    options = {name: getattr(layer, name) for name in SWITCHES}
    return naive.multi_channel(x, dict(layer.named_parameters()), layer.predecessors + 1, layer.cell, **options)


def gradients(y: torch.Tensor, *of: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad((y * torch.arange(y.numel(), dtype=y.dtype).view(y.shape).cos()).sum(), of)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
@pytest.mark.parametrize("cell", TORCH)
def test_a_layer_is_equations_1_to_6(cell, way):
    layer = layer_of(2, 3, 4, cell, mapping_start="uniform", **way)
    x = torch.randn(2, 6, 2, dtype=torch.float64, requires_grad=True)
    expected, weights = twin(layer, x)
    y, _ = layer(x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(layer.inside(x)["channel_weights"], weights, rtol=0, atol=1e-10)
    of = (x, *layer.parameters())
    for ours, theirs in zip(gradients(y, *of), gradients(expected, *of), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("block", [2, 3, 5])
def test_any_block_size_is_the_equations(block):
    layer, x = layer_of(3, block=block, mapping_start="uniform"), torch.randn(1, 8, 3, dtype=torch.float64)
    torch.testing.assert_close(layer(x)[0], twin(layer, x)[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
@pytest.mark.parametrize("cell", TORCH)
def test_one_channel_is_torchs_network(cell, way):
    layer = layer_of(3, 4, 2, cell, **way)
    network = TORCH[cell](3, 4, batch_first=True).double()
    network.load_state_dict({name: getattr(layer, name) for name in network.state_dict()})
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    y, expected = layer(x)[0], network(x)[0]
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    ours = gradients(y, x, *(getattr(layer, name) for name, _ in network.named_parameters()))
    for mine, theirs in zip(ours, gradients(expected, x, *network.parameters()), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_a_stack_passes_on_what_attention_makes_of_the_channels():
    torch.manual_seed(0)
    model, x = MCRNN(3, layers=2, d_hidden=5).double(), torch.randn(2, 6, 3, dtype=torch.float64)
    first, second = model.layers
    torch.testing.assert_close(model(x), twin(second, twin(first, x)[0])[0], rtol=0, atol=1e-10)


@given(block=st.integers(2, 9), t=st.integers(1, 60), phase=st.sampled_from(SWITCHES["phase"]))
def test_in_degrees_count_the_earlier_nodes_of_the_block(block, t, phase):
    layer = MultiChannelRNN(1, block=block, phase=phase)
    walked = [t - naive.block_start(t, k, block, phase) for k in range(1, block)]
    assert layer.in_degrees(1, t - 1).tolist() == [walked]
    assert sorted(walked) == list(range(1, block))  # at each step every length of dependence has its channel


def test_figure_2_shows_the_equations_phase():
    """Channels 1, 2, 3 show 3-, 2- and 4-word patterns, and a step later 4-, 3- and 2-word patterns."""
    for phase, found in (("equation", True), ("text", False)):
        rows = (MultiChannelRNN(1, phase=phase).in_degrees(9) + 1).tolist()
        assert ([[3, 2, 4], [4, 3, 2]] in [rows[i : i + 2] for i in range(8)]) is found


@pytest.mark.parametrize(("word", "channel", "before"), [(4, 2, 2), (8, 2, 3), (12, 2, 1), (2, 1, 1)])
def test_figure_3_joins_the_phrases_it_is_said_to_join(word, channel, before):
    """champions have been · few and far between · Italian Open · home-grown champions"""
    assert MultiChannelRNN(1).in_degrees(13)[word - 1, channel - 1] == before


def test_the_two_phases_agree_up_to_blocks_of_3_and_swap_channels_2_and_3_at_4():
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


def test_counting_predecessors_before_the_start_damps_the_first_steps():
    equation, clipped = (layer_of(2, cell="rnn", start=start) for start in SWITCHES["start"])
    x = torch.randn(1, 2, 2, dtype=torch.float64)
    (first, second), (first_clipped, second_clipped) = equation.channels(x)[0], clipped.channels(x)[0]
    torch.testing.assert_close(first, first_clipped)
    bias = equation.bias_hh_l0 + F.linear(x[0, 1], equation.weight_ih_l0, equation.bias_ih_l0)
    u = F.linear(first[0], equation.weight_hh_l0)
    torch.testing.assert_close(second, torch.stack([torch.tanh(bias + u / m) for m in (1, 3, 2)]))
    torch.testing.assert_close(second_clipped, torch.tanh(bias + u).expand(3, 2))


def path_lengths(block: int, steps: int) -> list[list[list[int]]]:
    """d[t][k][l - 1], measured: the power of ε with which ∂h_t^k / ∂x_{t-l} falls when all W_j = ε."""

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
def test_gradients_take_paths_of_exactly_these_lengths(block):
    n, lengths = block, path_lengths(block, 15)
    for t, distance in itertools.product(range(15), range(1, 11)):
        if distance > t:
            continue
        found = [d[distance - 1] for d in lengths[t]]
        assert min(found) == math.ceil(distance / (n - 1))
        assert max(found) == (1 if distance == 1 else (distance - 2) // (n - 1) + 2)


def test_some_channel_breaks_the_papers_bound_on_the_path():
    """Claimed: at most l // (n - 1) + 1. At n = 4 and l = 2 that is 1; where a block ends in between, it takes 2."""
    n, distance = 4, 2
    found = [d[distance - 1] for d in path_lengths(n, 8)[7]]
    assert sorted(found) == [1, 1, 2]
    assert max(found) > distance // (n - 1) + 1


@pytest.mark.parametrize(("mapping", "more"), [("shared", 1_311_744), ("per-gate", 3_671_040)])
def test_parameters_above_the_baseline_of_table_2(mapping, more):
    """Two encoder and two decoder layers of 256; the table prints 4 M more with three channels."""

    def count(*networks):
        return sum(p.numel() for network in networks for p in network.parameters())

    ours = count(*(MCRNN(256, layers=2, mapping=mapping) for _ in range(2)))
    assert ours - count(*(torch.nn.LSTM(256, 256, 2) for _ in range(2))) == more


def test_a_layers_matrices_start_as_torchs_do():
    torch.manual_seed(0)
    layer = MultiChannelRNN(40, 25, mapping_start="uniform")
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_block"):
        assert 0.19 < getattr(layer, name).abs().max() <= 0.2, name  # 1 / √25


def test_inside_shows_what_the_output_is_made_of_without_dropout():
    layer, x = layer_of(3, 4, weight_dropout=0.5), torch.randn(2, 7, 3, dtype=torch.float64)
    _, state = layer.eval()(x[:, :2])
    y = layer(x[:, 2:], state)[0]
    shown = layer.train().inside(x[:, 2:], state)
    torch.testing.assert_close((shown["channel_weights"][..., None] * shown["channels"]).sum(2), y)
    torch.testing.assert_close(shown["channel_weights"].sum(-1), torch.ones(2, 5).double())
    assert torch.equal(shown["in_degrees"], layer.in_degrees(7)[2:])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_attention_learns_under_autocast_from_what_differs_in_channels_much_alike(cell):
    torch.manual_seed(0)
    layer, x, pull = MultiChannelRNN(128, cell=cell), 0.1 * torch.randn(4, 20, 128), torch.randn(4, 20, 128)
    learns = list(layer.attention_v.parameters()) + list(layer.attention_r.parameters())
    expected = torch.autograd.grad((layer(x)[0] * pull).sum(), learns)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)[0]
    for ours, theirs in zip(torch.autograd.grad((y * pull).sum(), learns), expected, strict=True):
        assert (ours - theirs).norm() < 0.15 * theirs.norm()


@pytest.mark.parametrize("mapping", SWITCHES["mapping"])
@pytest.mark.parametrize(("on", "names"), [("all", ["weight_block", "weight_hh_l0"]), ("cell", ["weight_hh_l0"])])
def test_weight_dropout_hides_recurrent_weights_for_a_whole_read(on, names, mapping):
    layer = layer_of(3, 4, mapping=mapping, weight_dropout=0.5, weight_dropout_on=on)
    x = torch.randn(2, 9, 3, dtype=torch.float64)
    torch.manual_seed(1)
    y = layer(x)[0]
    torch.manual_seed(1)
    hidden = {name: F.dropout(getattr(layer, name).data, 0.5) for name in names}
    plain = layer_of(3, 4, mapping=mapping)
    plain.load_state_dict(layer.state_dict() | hidden)
    torch.testing.assert_close(y, plain(x)[0], rtol=0, atol=1e-12)
    assert (layer.eval()(x)[0] - y).abs().max() > 1e-3


def test_dropout_hides_the_same_units_at_every_step():
    torch.manual_seed(0)
    y = MCRNN(16, layers=2, dropout=0.5)(torch.randn(3, 9, 16))
    assert torch.equal(y == 0, (y[:, :1] == 0).expand_as(y))
    assert 0 < (y == 0).float().mean() < 1


def test_dropout_is_between_the_layers_too_where_nothing_else_is_said():
    torch.manual_seed(0)
    model, seen = MCRNN(64, layers=2, dropout=0.5), []
    model.layers[1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(torch.randn(2, 5, 64))
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6


@pytest.mark.parametrize("where", ["dropout_input", "dropout_hidden", "dropout"])
def test_each_of_awd_lstms_dropouts_acts_at_its_place_and_activations_are_before_the_last(where):
    torch.manual_seed(0)
    model, x = MCRNN(64, layers=2, **{"dropout_hidden": 0.0} | {where: 0.5}).double(), torch.randn(2, 5, 64).double()
    expected, seen = model.eval()(x), {}
    for name, layer in zip(("first", "second"), model.layers, strict=True):
        layer.register_forward_pre_hook(lambda _, args, name=name: seen.update({name: args[0]}))
    raw, _ = model.train().activations(x)
    hidden = [(seen[name] == 0).any().item() for name in ("first", "second")]
    assert hidden == [where == "dropout_input", where == "dropout_hidden"]
    assert torch.equal(raw, expected) is (where == "dropout")
    assert (model(x) == 0).any().item() is (where == "dropout")


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("block", 1, "block: expected a whole number of at least 2, got 1"),
        ("cell", "LSTM", "cell: 'LSTM' is unknown, allowed are rnn, gru, lstm"),
        ("start", "clip", "start: 'clip' is unknown, allowed are equation, clipped; did you mean 'clipped'"),
        ("phase", "figure", "phase: 'figure' is unknown"),
        ("cell_state", "last", "cell_state: 'last' is unknown"),
        ("mapping", "gate", "mapping: 'gate' is unknown"),
        ("mapping_start", "zero", "mapping_start: 'zero' is unknown"),
        ("weight_dropout", 1.0, "weight_dropout: expected a number from 0"),
        ("weight_dropout_on", "gates", "weight_dropout_on: 'gates' is unknown, allowed are all, cell"),
        ("dropout", -0.1, "dropout: expected a number from 0"),
        ("dropout_input", 1.0, "^dropout_input: expected a number from 0"),
        ("dropout_hidden", "0.1", "^dropout_hidden: expected a number from 0"),
        ("d_hidden", 0, "d_hidden: expected a whole number of at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused(argument, value, message):
    with pytest.raises(ValueError, match=message):
        MCRNN(4, layers=2, **{argument: value})


def test_a_state_of_another_block_size_or_cell_is_refused():
    x = torch.randn(2, 4)
    for other in ({"block": 3}, {"cell": "gru"}, {"layers": 1}):
        _, state = MCRNN(4, **{"layers": 2} | other).step(x)
        with pytest.raises(ValueError, match="state: expected"):
            MCRNN(4, layers=2).step(x, state)
