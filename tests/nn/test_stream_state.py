"""Bricks that read one position at a time, and the functions that work on their state.

The bricks of the models are in tests/models/test_streaming.py.
"""

import pytest
import torch
from comparison import stream

from rtx.nn import LocalRNN
from rtx.nn.local_attention import LocalAttention
from rtx.nn.relative import XLAttention
from rtx.nn.streaming import check_state, map_state, split


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("make", [lambda: LocalRNN(8, 1), lambda: XLAttention(8, 2)], ids=["no past", "no memory"])
def test_a_stream_of_a_brick_that_no_model_has_equals_the_whole_sequence(make):
    torch.manual_seed(0)
    brick, x = make().double(), numbers(2, 13, 8)
    torch.testing.assert_close(stream(brick, x), brick(x), rtol=0, atol=1e-10)
    first, state = brick.read(x[:, :6])
    torch.testing.assert_close(torch.cat([first, brick.read(x[:, 6:], state)[0]], 1), brick(x), rtol=0, atol=1e-10)


def test_the_state_of_local_attention_stops_growing():
    layer, state = LocalAttention(8, 2, 4).double(), None
    for t, x_t in enumerate(numbers(2, 9, 8).split(1, 1)):
        _, state = layer.read(x_t, state)
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
