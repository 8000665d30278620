"""TCN against torch's convolutions as the authors stack them, its sizes, its reach, its dropout."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import rtx
from rtx.lab.jacobian import reach
from rtx.models import TCN
from rtx.models.cards import CARDS
from rtx.nn.convolution import CausalConv


class Official(nn.Module):
    """The authors' block: padded on both sides, the end cut off, a 1×1 convolution around where widths differ."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.padding = (kernel - 1) * dilation
        self.first = weight_norm(nn.Conv1d(inputs, outputs, kernel, padding=self.padding, dilation=dilation))
        self.second = weight_norm(nn.Conv1d(outputs, outputs, kernel, padding=self.padding, dilation=dilation))
        self.around = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)[..., : x.shape[-1]].relu()
        y = self.second(y)[..., : x.shape[-1]].relu()
        return (y + self.around(x)).relu()


def official(widths: list[int], kernel: int) -> nn.Sequential:
    return nn.Sequential(*(Official(a, b, kernel, 2**i) for i, (a, b) in enumerate(itertools.pairwise(widths))))


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def pairs(ours: TCN, theirs: nn.Sequential):
    """Our parameter and torch's for each convolution: gain, direction, bias."""
    for block, twin in zip(ours.blocks, theirs, strict=True):
        for conv, other in ((block.first, twin.first), (block.second, twin.second)):
            original = other.parametrizations.weight
            yield from ((conv.gain, original.original0), (conv.direction, original.original1), (conv.bias, other.bias))


@settings(max_examples=25)
@given(
    T=st.integers(1, 20),
    D=st.integers(1, 5),
    layers=st.integers(1, 4),
    kernel=st.integers(1, 5),
    seed=st.integers(0, 999),
)
def test_equals_the_authors_stack_of_torchs_convolutions_with_all_gradients(T, D, layers, kernel, seed):
    torch.manual_seed(seed)
    ours, theirs = TCN(D, layers, kernel).double(), official([D] * (layers + 1), kernel).double()
    with torch.no_grad():
        for mine, other in pairs(ours, theirs):
            other.copy_(mine.normal_(std=0.5))
    x = torch.randn(2, T, D, dtype=torch.float64, requires_grad=True)
    x_theirs = x.detach().clone().requires_grad_()
    y, expected = ours(x), theirs(x_theirs.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(y)
    (y * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x.grad, x_theirs.grad, rtol=0, atol=1e-10)
    for mine, other in pairs(ours, theirs):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=1e-10)


@settings(max_examples=25)
@given(
    T=st.integers(1, 15),
    kernel=st.integers(1, 5),
    dilation=st.integers(1, 4),
    groups=st.sampled_from([1, 2, 4]),
    normalised=st.booleans(),
)
def test_a_convolution_streams(T, kernel, dilation, groups, normalised):
    torch.manual_seed(0)
    layer = CausalConv(4, 8, kernel, dilation, normalised, groups).double()
    x, state, rows = torch.randn(2, T, 4, dtype=torch.float64), None, []
    for x_t in x.unbind(1):
        y, state = layer.step(x_t, state)
        rows.append(y)
        assert state[0].shape == (2, (kernel - 1) * dilation, 4)
    torch.testing.assert_close(torch.stack(rows, 1), layer(x), rtol=0, atol=1e-12)


def test_a_convolution_without_normalisation_is_torchs_in_groups():
    torch.manual_seed(0)
    ours, theirs = CausalConv(6, 6, 4, normalised=False, groups=6), nn.Conv1d(6, 6, 4, padding=3, groups=6)
    theirs.load_state_dict({"weight": ours.direction, "bias": ours.bias})
    x = torch.randn(2, 9, 6)
    torch.testing.assert_close(ours(x), theirs(x.transpose(1, 2))[..., :9].transpose(1, 2))
    assert count(ours) == 6 * 4 + 6


def test_weights_start_as_torchs_do_whatever_their_gain():
    torch.manual_seed(0)
    conv = CausalConv(8, 8, 2)
    torch.testing.assert_close(conv.weight(), conv.direction)
    assert 0.24 < conv.weight().abs().max() <= 0.25  # 1 / √(8 · 2)


def test_a_groups_weights_start_as_torchs_do_by_the_inputs_of_a_group():
    torch.manual_seed(0)
    conv = CausalConv(64, 64, 4, normalised=False, groups=64)
    for parameter in (conv.direction, conv.bias):
        assert 0.45 < parameter.abs().max() <= 0.5  # 1 / √(4 · 1)


def test_the_authors_first_weights_are_undone_by_weight_normalisation():
    """Their N(0, .01) goes into the product, which the next forward pass computes anew from gain and direction."""
    torch.manual_seed(0)
    with pytest.warns(FutureWarning, match="deprecated"):
        conv = nn.utils.weight_norm(nn.Conv1d(8, 8, 2))  # the function that their code calls
    before = conv.weight.detach().clone()
    conv.weight.data.normal_(0, 0.01)
    conv(torch.randn(1, 8, 5))
    torch.testing.assert_close(conv.weight.detach(), before)


@pytest.mark.parametrize(("layers", "kernel"), [(1, 1), (1, 3), (2, 3), (3, 2), (2, 5)])
def test_reach_is_what_the_card_says(layers, kernel):
    torch.manual_seed(0)
    model, T = TCN(3, layers, kernel).double(), 28
    for block in model.blocks:
        for conv in (block.first, block.second):
            nn.init.uniform_(conv.direction, 0.1, 1)  # all positive: no ReLU stands in the way
            nn.init.zeros_(conv.bias)
    jacobian = reach(model, torch.rand(1, T, 3, dtype=torch.float64))
    seen = CARDS["tcn"].reach(d_model=3, layers=layers, kernel=kernel)
    assert seen == 1 + 2 * (kernel - 1) * (2**layers - 1)
    assert (jacobian[-1] > 0).tolist() == [t >= T - seen for t in range(T)]


TABLES = {
    # F inputs, D, layers, kernel, what the tables' models have in all
    "mnist": (1, 25, 8, 7, 66_910),
    "nottingham": (88, 150, 4, 5, 882_538),
}


@pytest.mark.parametrize("task", TABLES)
def test_parameters_are_the_published_ones_but_for_the_first_convolution(task):
    """Theirs reads F inputs; ours D, of an embedding with as many parameters as the 1×1 convolution around theirs."""
    F, D, layers, kernel, published = TABLES[task]
    ours = rtx.build(task, "tcn", d_model=D, layers=layers, kernel=kernel)
    theirs = official([F] + [D] * layers, kernel)
    assert count(theirs) + count(ours.head) == published
    assert count(theirs[0].around) == count(ours.embedding)
    assert count(ours) - published == (D - F) * D * kernel
    assert count(ours) == {"mnist": 71_110, "nottingham": 929_038}[task]


def test_parameters_on_words_are_the_published_ones():
    blocks, tied_embedding = count(TCN(600, 4, 3)), 10_000 * 600 + 10_000
    assert blocks == count(official([600] * 5, 3)) == 8_649_600
    assert blocks + tied_embedding == 14_659_600


def test_on_characters_the_authors_widths_end_at_that_of_the_tied_embedding():
    """49 characters, embeddings of 100: 2.2M; all layers as wide as the table's 450 have 3.7M."""
    theirs = official([100, 450, 450, 100], 3)
    assert count(theirs) == 2_217_050
    assert count(theirs) + 49 * 100 + 49 == 2_221_999
    assert count(TCN(450, 3, 3)) == 3_650_400


def test_the_papers_dropout_takes_whole_channels_the_codes_single_numbers():
    x = torch.rand(4, 50, 8)
    zeros = {}
    for drop in ("channels", "elements"):
        torch.manual_seed(0)
        block = TCN(8, 1, dropout=0.5, drop=drop).train().blocks[0]
        zeros[drop] = (block._dropped(x) == 0).float().mean(1)  # share of positions, per sequence and channel
    assert set(zeros["channels"].unique().tolist()) == {0.0, 1.0}
    assert ((zeros["elements"] > 0.2) & (zeros["elements"] < 0.8)).all()


def test_a_convolution_that_is_dropped_leaves_the_way_around_it_in_a_stream_too():
    block, x = TCN(8, 1, dropout=0.5).blocks[0], torch.randn(2, 9, 8)
    block.dropout = 1.0
    assert torch.equal(block(x), x.relu()) and torch.equal(block.step(x[:, 0])[0], x[:, 0].relu())


def test_dropout_ends_with_training():
    model, x = TCN(8, 2, dropout=0.5), torch.randn(2, 9, 8)
    assert not torch.equal(model.train()(x), model(x))
    assert torch.equal(model.eval()(x), model(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TCN(8, 2, kernel=0), "kernel: expected a whole number of at least 1, got 0"),
        (lambda: TCN(8, 2, dropout=1.0), "dropout: expected a number from 0 up to, not including, 1, got 1.0"),
        (lambda: TCN(8, 2, drop="channel"), "drop: 'channel' is unknown, .*did you mean 'channels'"),
        (lambda: CausalConv(8, 8, 2, dilation=0), "dilation: expected a whole number of at least 1, got 0"),
        (lambda: CausalConv(8, 6, 2, groups=4), "groups: expected a divisor of 8 and 6, got 4"),
        (lambda: CausalConv(8, 6, 2)(torch.randn(2, 9, 6)), r"x: expected shape \(batch, time, 8\)"),
        (
            lambda: TCN(8, 1, 3).step(torch.randn(2, 8), TCN(8, 1, 2).step(torch.randn(2, 8))[1]),
            r"state: expected tensors of shapes \(2, 2, 8\) .*, got \(2, 1, 8\)",
        ),
        (lambda: TCN(8, 1).step(torch.randn(2, 8), ((),)), "state: expected one of 2 convolutions, got one of 0"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
