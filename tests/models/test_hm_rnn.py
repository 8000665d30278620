"""HM-RNN against loops over its equations, and each of its operations against torch's LSTM cell."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import assert_same, count, gradients
from references import hm_rnn, hm_rnn_with_operations

from rtx.models import HMRNN
from rtx.models.hm_rnn import OPERATIONS, boundary_of


def model_of(*args, **options) -> HMRNN:
    torch.manual_seed(0)
    return HMRNN(*args, **options).double()


@pytest.mark.parametrize("epoch", [0, 50])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_outputs_and_straight_through_gradients_are_those_of_the_equations(layers, epoch):
    model = model_of(4, layers=layers)
    model.start_epoch(epoch)
    x = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True)
    assert_same(model(x), hm_rnn(model, x), [x, *model.parameters()])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_slope_changes_no_output_in_any_precision(dtype):
    """In half precision 1 + s is 1 for a small s above 0, but 1 + 5 s is not."""
    model, x = HMRNN(32).to(dtype), torch.randn(8, 50, 32, dtype=dtype)
    before = model(x)
    model.start_epoch(100)
    assert torch.equal(model(x), before)
    least = torch.tensor([-1.0, 1.0], dtype=dtype) * torch.finfo(dtype).tiny
    assert boundary_of(least, 1.0).tolist() == [0.0, 1.0]


def test_introspect_returns_the_operations_and_every_one_occurs():
    model, x = model_of(4), torch.randn(2, 30, 4, dtype=torch.float64)
    _, names = hm_rnn_with_operations(model, x)
    shown = model.introspect(x)["operations"]
    assert [[[OPERATIONS[i] for i in step] for step in row] for row in shown.tolist()] == names
    assert set(shown[..., 0].flatten().tolist()) == {0, 2}  # the bottom layer always reads an input
    assert set(shown[..., 1].flatten().tolist()) == {0, 1, 2}
    assert set(shown[..., 2].flatten().tolist()) == {0, 1}  # the top is never flushed


def lstm_of(level: torch.nn.Module) -> torch.nn.LSTM:
    """Return torch's LSTM with the weights of a layer; it has no boundary."""
    network = torch.nn.LSTM(level.d_model, level.d_model, batch_first=True).double()
    weights = {"weight_ih_l0": level.bottom_up, "weight_hh_l0": level.recurrent, "bias_ih_l0": level.bias}
    weights["bias_hh_l0"] = torch.zeros_like(level.bias)
    network.load_state_dict({name: weight[: 4 * level.d_model] for name, weight in weights.items()})
    return network


def test_one_layer_is_torchs_lstm_with_the_output_module_on_top():
    model, x = model_of(5, layers=1), torch.randn(2, 9, 5, dtype=torch.float64)
    h, _ = lstm_of(model.levels[0])(x)
    expected = torch.relu(torch.sigmoid(h @ model.output_gates.weight.T) * (h @ model.output.weight.T))
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-12)
    assert model.introspect(x)["boundaries"].shape == (2, 9, 0)


@given(
    s=st.floats(-3, 3),
    slope=st.floats(1, 5),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
)
def test_a_boundary_is_exactly_0_or_1_in_every_precision(s, slope, dtype):
    number = torch.tensor([s], dtype=dtype, requires_grad=True)
    soft = ((slope * number + 1) / 2).clamp(0, 1)
    hard = boundary_of(number, slope)
    assert hard.item() == float(number.item() > 0)  # where soft is above 1/2, without rounding
    assert torch.equal(torch.autograd.grad(hard, number)[0], torch.autograd.grad(soft, number)[0])


def test_start_epoch_raises_the_slope_from_1_to_5_which_changes_gradients():
    model, x = model_of(4), torch.randn(2, 20, 4, dtype=torch.float64)
    slopes, found = [], []
    for epoch in (0, 25, 100, 1000):
        model.start_epoch(epoch)
        slopes.append(model.slope), found.append(gradients(model(x), [model.levels[0].bias])[0][-1])
    assert slopes == [1.0, 2.0, 5.0, 5.0]
    assert (found[0] - found[1]).abs() > 1e-6 and found[2] == found[3]


def test_it_cannot_have_fewer_parameters_than_the_lstm_it_is_compared_with():
    # more: the weights from above and the boundary's row below the top; less: one of the LSTM's two biases
    more = 3 * (4 * 256**2 + 3 * 256 + 1) - 4 * 4 * 256
    assert count(HMRNN(256, layers=4).levels) - count(torch.nn.LSTM(256, 256, 4)) == more > 0


def test_with_closed_boundaries_the_bottom_is_an_lstm_and_the_layers_above_copy():
    model, x = model_of(4, layers=3), torch.randn(2, 8, 4, dtype=torch.float64)
    for level in model.levels[:2]:
        level.bias.data[-1] = -1e4
    shown = model.introspect(x)
    torch.testing.assert_close(shown["states"][:, :, 0], lstm_of(model.levels[0])(x)[0], rtol=0, atol=1e-12)
    assert not shown["states"][:, :, 1:].any() and not shown["boundaries"].any()
    assert shown["operations"].unique().tolist() == [0, 1]
