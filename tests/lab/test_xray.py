"""`xray` measures what modules see, whoever wrote them."""

import re

import pytest
import torch
from torch.nn.functional import pad

from rtx import RTransformer
from rtx.lab import receptive_field, xray
from rtx.nn import LocalRNN, MultiHeadAttention, causal_mask


class Applies(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_reach_is_the_norm_of_the_jacobian_that_torch_computes():
    torch.manual_seed(0)
    model, x = RTransformer(4, 1, 2, 3).double().eval(), torch.randn(1, 5, 4, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda v: model(v[None])[0], x[0])  # (T, D, T, D)
    torch.testing.assert_close(receptive_field(model, x), jacobian.square().sum((1, 3)).sqrt())


def test_a_causal_module_has_no_leak_and_one_wrong_entry_of_a_mask_is_one():
    mask, x, attention = causal_mask(6), torch.randn(1, 6, 4), MultiHeadAttention(4, 1)
    masked = Applies(lambda x: attention(x, mask))
    found = xray(masked, x)
    assert found.leaks == [] and found.span == 6 and found.verdict.startswith("Causal")
    mask[2, 4] = True
    assert xray(masked, x).leaks == [(2, 4)]


@pytest.mark.parametrize("window", [1, 3, 5])
def test_the_span_of_a_local_rnn_is_its_window(window):
    assert xray(LocalRNN(4, window), torch.randn(1, 9, 4)).span == window


@pytest.mark.parametrize(("by", "window"), [(0, 1), (3, 4)])
def test_the_effective_window_holds_what_moves_the_last_output(by, window):
    delayed = Applies(lambda x: pad(x, (0, 0, by, 0))[:, : x.shape[1]])
    assert xray(delayed, torch.randn(1, 6, 2)).window == window


@pytest.mark.parametrize(
    ("function", "span"), [(torch.zeros_like, 0), (torch.detach, 1), (lambda x: x.argmax(-1), 1), (torch.round, 1)]
)
def test_a_changed_input_shows_paths_without_a_derivative(function, span):
    found = xray(Applies(function), torch.randn(1, 4, 3))
    assert (found.derivatives == 0).all() and (found.span, found.window, found.leaks) == (span, 0, [])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - x.mean(1, keepdim=True).detach(),
        lambda x: x + x.flip(1).round(),
        lambda x: x / x.abs().amax(1, keepdim=True).detach(),
        lambda x: x + x.argmax(1, keepdim=True),
    ],
)
def test_a_leak_without_a_derivative_is_found_and_named_as_such(function):
    found = xray(Applies(function), torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0)))
    assert (
        found.leaks
        and not found.derivatives.triu(1).any()
        and "Derivatives, which end at a detach(), show 0" in found.verdict
    )


def test_a_leak_too_weak_to_change_a_bit_is_found_by_its_derivative():
    ahead = xray(Applies(lambda x: x + 1e-12 * x.flip(1)), torch.ones(1, 5, 3))
    assert ahead.leaks == [(0, 4), (1, 3)]
    assert not ahead.changed.triu(1).any() and ahead.derivatives.triu(1).any()


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.GRU(6, 6),
        torch.nn.LSTM(6, 6, 2),
        torch.nn.TransformerEncoderLayer(6, 2, 8),
        torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(6, 2, 8), 2, enable_nested_tensor=False),
    ],
)
def test_torchs_layers_that_have_time_first_are_read_along_time(module):
    T = 5
    found = xray(module, torch.randn(1, T, 6))
    assert found.span == T  # along the batch each output would depend on its own position only
    assert len(found.leaks) == (0 if isinstance(module, torch.nn.RNNBase) else T * (T - 1) // 2)


def test_a_module_that_draws_random_numbers_is_measured_and_one_that_remembers_is_refused():
    assert xray(Applies(lambda x: x + torch.rand_like(x)), torch.randn(1, 4, 3)).span == 1
    calls = []
    counting = Applies(lambda x: x + (calls.append(1) or len(calls)))
    with pytest.raises(ValueError, match="model: "):
        xray(counting, torch.randn(1, 4, 3))


def test_a_module_may_change_its_input_in_place_and_x_stays_as_it_is():
    x = torch.tensor([[[1.0], [-1.0], [2.0]]])
    kept = x.clone()
    assert receptive_field(torch.nn.ReLU(inplace=True), x).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert torch.equal(x, kept)


def test_the_verdict_names_the_strongest_of_several_leaks():
    ahead = Applies(lambda x: x[:, [1, 2, 2]] * torch.tensor([[1.0], [3.0], [1.0]]))
    told = xray(ahead, torch.randn(1, 3, 4)).verdict
    assert re.findall(r"\d+", told)[:3] == ["2", "2", "3"]  # two places; output 2 depends on input 3, counted from one
