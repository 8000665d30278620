"""LocalRNN against torch's networks on every window, against its naive twin, and its cost."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from rtx.nn import LocalRNN, naive

TORCH = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
CELLS = sorted(TORCH)


def on_every_window(network: torch.nn.RNNBase, x: torch.Tensor, window: int) -> torch.Tensor:
    """Torch's network on each zero-padded window, last state kept: Eq. 2-3 to the letter."""
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
def test_equals_torch_on_every_padded_window_with_all_gradients(cell, B, T, D, window, seed):
    torch.manual_seed(seed)
    ours = LocalRNN(D, window, cell).double()
    theirs = TORCH[cell](D, D, batch_first=True).double()
    theirs.load_state_dict(ours.state_dict())
    x, weight = torch.randn(2, B, T, D, dtype=torch.float64)
    x_ours, x_theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = ours(x_ours), on_every_window(theirs, x_theirs, window)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    (y * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x_ours.grad, x_theirs.grad, rtol=0, atol=1e-10)
    for name, parameter in ours.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad  # M = 1: no recurrence
        torch.testing.assert_close(gradient, theirs.get_parameter(name).grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
def test_equals_its_naive_twin(cell):
    torch.manual_seed(0)
    layer = LocalRNN(4, 3, cell).double()
    x = torch.randn(2, 6, 4, dtype=torch.float64)
    expected = naive.local_rnn(x, *layer.state_dict().values(), window=3, cell=cell)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_state_dict_moves_both_ways(cell):
    ours, theirs = LocalRNN(5, 3, cell), TORCH[cell](5, 5, batch_first=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())


@pytest.mark.parametrize("cell", CELLS)
def test_initial_weights_have_torchs_bounds(cell):
    torch.manual_seed(0)
    for parameter in LocalRNN(64, 3, cell).parameters():
        assert 0.11 < parameter.abs().max() <= 1 / 8  # uniform in ±1/√D


@pytest.mark.parametrize("cell", CELLS)
def test_projects_each_position_once_and_skips_the_first_recurrent_product(cell):
    B, T, D, M = 2, 11, 8, 5
    with FlopCounterMode(display=False) as counter:
        LocalRNN(D, M, cell)(torch.randn(B, T, D))
    one_product = 2 * B * T * D * GATES[cell] * D
    assert counter.get_total_flops() == one_product * (1 + (M - 1))


def test_makes_no_copy_of_the_windows():
    class Largest(TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                self.elements = max(self.elements, out.untyped_storage().nbytes() // out.element_size())
            return out

    B, T, D, M = 2, 30, 4, 20
    layer, x = LocalRNN(D, M, "rnn"), torch.randn(B, T, D, requires_grad=True)
    with Largest() as seen:
        layer(x).sum().backward()
    assert seen.elements == B * (T + M - 1) * D  # the padded projections; all windows would be B · T · M · D
    assert seen.elements < B * T * M * D


@pytest.mark.parametrize("arguments", [(0, 3), (4, 0), (4, -1), (4, 2.0), (True, 3)])
def test_sizes_below_one_are_refused(arguments):
    with pytest.raises(ValueError, match=r"(d_model|window): expected a whole number of at least 1, got"):
        LocalRNN(*arguments)


def test_unknown_cell_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"cell: 'gruu' is unknown, allowed are rnn, gru, lstm; did you mean 'gru'"):
        LocalRNN(4, 3, "gruu")


def test_a_cell_in_capitals_is_refused_with_its_name():
    with pytest.raises(ValueError, match=r"cell: 'LSTM' is unknown, allowed are rnn, gru, lstm; did you mean 'lstm'"):
        LocalRNN(4, 3, "LSTM")
