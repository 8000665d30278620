"""TCN against torch's convolutions as the authors stack them, its sizes, its dropout."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import assert_same, count
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import rtx
from rtx.models import TCN
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


def pairs(ours: TCN, theirs: nn.Sequential):
    """Yield our parameter and torch's for each convolution: gain, direction, bias."""
    for block, other_block in zip(ours.blocks, theirs, strict=True):
        for conv, other in ((block.first, other_block.first), (block.second, other_block.second)):
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
    mine, others = zip(*pairs(ours, theirs), strict=True)
    assert_same(ours(x), theirs(x.transpose(1, 2)).transpose(1, 2), [x, *mine], [x, *others])


@settings(max_examples=25)
@given(
    T=st.integers(1, 15),
    before=st.integers(0, 14),
    kernel=st.integers(1, 5),
    dilation=st.integers(1, 4),
    groups=st.sampled_from([1, 2, 4]),
    normalised=st.booleans(),
)
def test_a_convolution_in_two_pieces_equals_the_whole_sequence(T, before, kernel, dilation, groups, normalised):
    torch.manual_seed(0)
    layer = CausalConv(4, 8, kernel, dilation, normalised, groups).double()
    x = torch.randn(2, T, 4, dtype=torch.float64)
    cut = before % T  # the first piece may be empty
    first, state = layer.read(x[:, :cut]) if cut else (x.new_empty(2, 0, 8), None)
    last, (past,) = layer.read(x[:, cut:], state)
    torch.testing.assert_close(torch.cat([first, last], 1), layer(x), rtol=0, atol=1e-12)
    assert past.shape == (2, (kernel - 1) * dilation, 4)


def test_weights_start_as_torchs_do_for_the_inputs_of_a_group():
    torch.manual_seed(0)
    for groups, bound in ((1, 1 / 16), (64, 1 / 2)):  # 1 / √(inputs of a group · kernel)
        conv = CausalConv(64, 64, 4, groups=groups)
        torch.testing.assert_close(conv.filters(), conv.direction)  # the gain starts as the norm
        for parameter in (conv.direction, conv.bias):
            assert 0.9 * bound < parameter.abs().max() <= bound


TABLES = {
    # F inputs, D, layers, kernel, parameters of the tables' models
    "mnist": (1, 25, 8, 7, 66_910),
    "nottingham": (88, 150, 4, 5, 882_538),
}


@pytest.mark.parametrize("task", TABLES)
def test_parameters_are_the_published_ones_except_for_the_first_convolution(task):
    """Theirs reads F inputs. Ours reads D, from an embedding with as many parameters as their 1×1 convolution."""
    F, D, layers, kernel, published = TABLES[task]
    ours = rtx.build(task, "tcn", d_model=D, layers=layers, kernel=kernel)
    theirs = official([F] + [D] * layers, kernel)
    assert count(theirs) + count(ours.head) == published
    assert count(theirs[0].around) == count(ours.embedding)
    assert count(ours) - published == (D - F) * D * kernel
    assert count(ours) == {"mnist": 71_110, "nottingham": 929_038}[task]


def test_dropout_hides_whole_channels():
    block = TCN(8, 1, dropout=0.5).train().blocks[0]
    zeros = (block.dropout(torch.rand(4, 50, 8)) == 0).float().mean(1)  # share of positions, per sequence and channel
    assert set(zeros.unique().tolist()) == {0.0, 1.0}


def test_with_all_of_the_convolutions_dropped_the_residual_is_left_also_in_a_stream():
    block, x = TCN(8, 1, dropout=0.5).blocks[0], torch.randn(2, 9, 8)
    block.dropout.p = 1.0
    assert torch.equal(block(x), x.relu()) and torch.equal(block.read(x)[0], x.relu())
