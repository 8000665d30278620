"""LocalRNN against torch's own networks, run on every window, and its cost."""

import re

import pytest
import torch
from comparison import Largest, assert_near, outputs_and_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from rtx.nn import LocalRNN, MultiChannelRNN, MultiHeadAttention

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
TORCH = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
CELLS = sorted(TORCH)
EACH = pytest.mark.parametrize("cell", CELLS)


def on_every_window(network: torch.nn.RNNBase, x: torch.Tensor, window: int) -> torch.Tensor:
    """Return the last state of torch's network on each zero-padded window: Eq. 2-3."""
    padded = F.pad(x, (0, 0, window - 1, 0))
    return torch.stack([network(padded[:, t : t + window])[0][:, -1] for t in range(x.shape[1])], 1)


@settings(max_examples=25)
@given(
    cell=st.sampled_from(CELLS),
    B=st.integers(1, 3),
    T=st.integers(1, 9),
    D=st.integers(1, 6),
    window=st.integers(1, 12),
    seed=st.integers(0, 999),
)
def test_outputs_and_gradients_equal_torchs_network_on_every_padded_window(cell, B, T, D, window, seed):
    torch.manual_seed(seed)
    ours, theirs = LocalRNN(D, window, cell).double(), TORCH[cell](D, D, batch_first=True).double()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    found = outputs_and_gradients(ours(x), [x, *ours.parameters()])
    assert_near(found, outputs_and_gradients(on_every_window(theirs, x, window), [x, *theirs.parameters()]), 1e-10)


@pytest.mark.parametrize("layer", [LocalRNN(8, 3), MultiHeadAttention(8, 2), MultiChannelRNN(8)])
def test_the_bricks_of_the_papers_refuse_another_shape(layer):
    for shape in ((5, 8), (2, 3, 5, 8), (2, 5, 7), (2, 0, 8)):
        with pytest.raises(ValueError, match=f"^x: .*{re.escape(str(shape))}"):
            layer(torch.zeros(shape))
        with pytest.raises(ValueError, match=f"^x: .*{re.escape(str(shape))}"):
            getattr(layer, "read", layer)(torch.zeros(shape))


@EACH
def test_initial_weights_are_within_torchs_bounds(cell):
    torch.manual_seed(0)
    for parameter in LocalRNN(64, 3, cell).parameters():
        assert 0.11 < parameter.abs().max() <= 1 / 8  # uniform in ±1/√D


@EACH
def test_introspect_returns_the_state_after_each_position_of_a_window(cell):
    torch.manual_seed(0)
    layer, x = LocalRNN(4, 3, cell).double(), torch.randn(2, 6, 4, dtype=torch.float64)
    found = layer.introspect(x)
    assert set(found) == ({"states", "memories"} if cell == "lstm" else {"states"})
    assert found["states"].shape == (2, 6, 3, 4)
    torch.testing.assert_close(found["states"][:, :, -1], layer(x), rtol=0, atol=1e-12)
    shorter = LocalRNN(4, 2, cell).double()  # the second state of a window at t is the last of a shorter one at t - 1
    shorter.load_state_dict(layer.state_dict())
    torch.testing.assert_close(found["states"][:, 1:, 1], shorter(x)[:, :-1], rtol=0, atol=1e-12)
    if cell == "lstm":
        network = torch.nn.LSTM(4, 4, batch_first=True).double()
        network.load_state_dict(layer.state_dict())
        torch.testing.assert_close(found["memories"][:, 5, -1], network(x[:, 3:])[1][1][0], rtol=0, atol=1e-12)


def test_the_windows_are_not_copied():
    B, T, D, M = 2, 30, 4, 20
    layer, x = LocalRNN(D, M, "rnn"), torch.randn(B, T, D, requires_grad=True)
    with Largest() as largest:
        layer(x).sum().backward()
    assert largest.numbers == B * (T + M - 1) * D < B * T * M * D  # the padded projections


@EACH
def test_each_position_is_projected_once_and_the_first_step_has_no_recurrent_product(cell):
    B, T, D, M = 2, 11, 8, 5
    with FlopCounterMode(display=False) as counter:
        LocalRNN(D, M, cell)(torch.randn(B, T, D))
    one_product = 2 * B * T * D * GATES[cell] * D
    assert counter.get_total_flops() == one_product * (1 + (M - 1))
