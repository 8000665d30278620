"""Every brick that reads one position at a time, and the functions that work on its state."""

import pytest
import torch
from comparison import stream

from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, RelativeAttention, Residual
from rtx.nn.convolution import CausalConv
from rtx.nn.linear_recurrence import RGLRU
from rtx.nn.local_attention import LocalAttention
from rtx.nn.relative import XLAttention
from rtx.nn.segment_memory import SegmentMemory
from rtx.nn.streaming import check_state, map_state, split

BRICKS = {
    "feed-forward": lambda: FeedForward(8),
    "local rnn": lambda: LocalRNN(8, 4, "gru"),
    "local rnn without a past": lambda: LocalRNN(8, 1),
    "local lstm": lambda: LocalRNN(8, 4, "lstm"),
    "attention": lambda: MultiHeadAttention(8, 2),
    "relative attention": lambda: RelativeAttention(8, 2, 3),
    "xl attention": lambda: XLAttention(8, 2),
    "segment memory": lambda: SegmentMemory(XLAttention(8, 2), 3, 4),
    "local attention": lambda: LocalAttention(8, 2, 3),
    "convolution": lambda: CausalConv(8, 8, 3, 2),
    "rg-lru": lambda: RGLRU(8, 2),
    "residual": lambda: Residual(LocalRNN(8, 4), 8, "pre"),
}


@pytest.fixture(params=BRICKS)
def brick(request) -> torch.nn.Module:
    torch.manual_seed(0)
    return BRICKS[request.param]().double()


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_a_stream_equals_the_whole_sequence(brick):
    x = numbers(2, 13, 8)
    torch.testing.assert_close(stream(brick, x), brick(x), rtol=0, atol=1e-10)


def test_the_state_of_local_attention_stops_growing():
    layer, state = LocalAttention(8, 2, 4).double(), None
    for t, x_t in enumerate(numbers(2, 9, 8).unbind(1)):
        _, state = layer.step(x_t, state)
        assert [part.shape for part in state] == [(2, min(t + 1, 4), 4)] * 2


def test_functions_of_a_state_leave_whole_numbers_as_they_are():
    state = (torch.ones(2, 3), 4, (torch.zeros(2, 1), None))
    doubled = map_state(lambda part: 2 * part, state)
    assert torch.equal(doubled[0], 2 * torch.ones(2, 3)) and doubled[1] == 4 and doubled[2][1] is None
    check_state(state[:2], (2, None), None)
    for shapes in [((2, 3),), ((2, 4), None), (None, (2, 3)), ((2, 3, 1), None)]:
        with pytest.raises(ValueError, match=r"^state: .*got .*\(2, 3\)"):
            check_state(state[:2], *shapes)


def test_the_state_of_a_stack_has_a_part_for_each_layer():
    assert split(None, 2) == (None, None) and split((1, 2), 2) == (1, 2)
    with pytest.raises(ValueError, match="^state: .*2.*got 3"):
        split((1, 2, 3), 2)
