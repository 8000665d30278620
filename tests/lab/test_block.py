"""The block explorer builds the models it names, and shows their sizes and their reach."""

import pytest
import torch
from torch import nn

from rtx import RTransformer
from rtx.lab import explore
from rtx.lab.explore import Explorer
from rtx.lab.explore.block import stack
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention

ALL = {"norm": "post", "sublayers": "all sublayers", "depth": 2}


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return explore.block()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_stack_of_all_sublayers_is_an_r_transformer(norm: str) -> None:
    made = stack([lambda: LocalRNN(6, 3), lambda: MultiHeadAttention(6, 2), lambda: FeedForward(6)], 6, 2, norm)
    model = RTransformer(6, 2, 2, 3, norm=norm)
    model.blocks.load_state_dict(made.state_dict())
    x = torch.randn(2, 5, 6)
    torch.testing.assert_close(made(x), model(x))


@pytest.mark.parametrize("depth", [1, 4])
def test_without_attention_reach_is_that_of_the_local_rnns(explorer: Explorer, depth: int) -> None:
    text = explorer.set(norm="post", sublayers="no attention", depth=depth)
    assert f"Output 12 is moved by {2 * depth + 1} of 12 inputs" in text
    shown = explorer.figure.axes[0].images[0].get_array()
    assert int((~shown.mask[-1]).sum()) == 2 * depth + 1


@pytest.mark.parametrize("left_out", ["no LocalRNN", "no feed-forward"])
def test_with_attention_one_block_reaches_everything(explorer: Explorer, left_out: str) -> None:
    assert "moved by 12 of 12 inputs" in explorer.set(norm="pre", sublayers=left_out, depth=1)


def test_size_stays_at_one_after_post_norm_and_grows_under_pre_norm(explorer: Explorer) -> None:
    assert explorer.set(**ALL | {"depth": 8}).startswith("Activations leave block 8 with size 1.00.")
    line = explorer.figure.axes[1].lines[0]
    assert line.get_ydata()[1:] == pytest.approx([1] * 8, abs=1e-3)
    assert list(line.get_xdata()) == list(range(9))  # 0 is the input
    explorer.set(norm="pre")
    title = explorer.figure.axes[0].get_title
    assert title("left") + title("center") == "pre-norm, all sublayers, L = 8"
    assert len(line.get_ydata()) == 9 and line.get_ydata()[-1] > 1.2


def test_data_and_sublayers_of_ones_own() -> None:
    torch.manual_seed(0)  # by other weights so large an input may saturate a unit that the window's first would move
    x = 100 * torch.randn(1, 6, 5, dtype=torch.float64)
    explorer = explore.block(x, {"wide": lambda: LocalRNN(5, 4), "square": lambda: nn.Linear(5, 5)})
    assert explorer.controls["sublayers"].options == ("all sublayers", "no wide", "no square")
    assert "Output 6 is moved by 4 of 6 inputs" in explorer.set(depth=1)
    assert "Output 6 is moved by 1 of 6 inputs: its own makes up 100.0 % of it" in explorer.set(sublayers="no wide")
    assert explorer.figure.axes[1].get_ylim()[1] > 50  # the input's size is in sight


def test_bad_input_is_named() -> None:
    for x, got in ((torch.zeros(2, 3, 4), r".*\(2, 3, 4\)"), (torch.full((1, 3, 4), torch.nan), "")):
        with pytest.raises(ValueError, match=f"x: {got}"):
            explore.block(x)
    with pytest.raises(ValueError, match="sublayers: "):
        explore.block(sublayers={"a": lambda: nn.Linear(8, 8)})
