"""The window explorer shows what LocalRNN computes, and says what it reads."""

import pytest
import torch
from matplotlib.colors import to_rgb
from torch import Tensor

from rtx.lab import explore
from rtx.lab.explore import Explorer
from rtx.lab.explore.window import window_states
from rtx.lab.plots import COLOURS
from rtx.nn import LocalRNN

X = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    """One for several tests: to draw takes longer than to test."""
    return explore.window(X)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_last_state_of_every_window_is_the_output_of_local_rnn(cell: str, dtype: torch.dtype) -> None:
    model, x = LocalRNN(5, 4, cell).to(dtype), X.to(dtype)
    last = torch.stack([window_states(model, x, t, 4)[-1] for t in range(1, 10)])
    torch.testing.assert_close(last, model(x[None])[0])


def test_the_states_are_those_of_growing_windows_without_pads() -> None:
    model = LocalRNN(5, 1)
    states = window_states(model, X, position=7, window=4)
    for step in range(4):
        end = 4 + step  # the window of 7 starts at 4
        torch.testing.assert_close(states[step], window_states(model, X, end, step + 1)[-1])


@pytest.mark.parametrize(
    ("moves", "sentence"),
    [
        ({"window": 3, "position": 6}, "3, h_6 of the GRU reads positions 4 to 6 and no pad;"),
        ({"window": 3, "position": 2}, "3, h_2 of the GRU reads positions 1 to 2 and 1 pad;"),
        ({"window": 8, "position": 1, "cell": "lstm"}, "8, h_1 of the LSTM reads position 1 and 7 pads;"),
    ],
)
def test_the_sentence_says_which_positions_are_read(
    explorer: Explorer, moves: dict[str, object], sentence: str
) -> None:
    assert sentence in explorer.set(**{"cell": "gru"} | moves)


def test_window_and_pads_are_drawn_where_they_are(explorer: Explorer) -> None:
    read, pads = explorer.figure.axes[0].patches
    states = explorer.figure.axes[1].images[0]
    explorer.set(window=4, position=2)  # two pads, at -1 and 0, then positions 1 and 2
    assert (pads.get_x(), pads.get_width(), pads.get_visible()) == (-1.5, 2, True)
    assert (read.get_x(), read.get_width()) == (0.5, 2)
    assert states.get_extent() == [-1.5, 2.5, 5.5, 0.5] and states.get_array().shape == (5, 4)
    assert to_rgb(read.get_edgecolor()) == COLOURS[0] and to_rgb(pads.get_edgecolor()) == COLOURS[1]  # blue, orange
    explorer.set(position=6)
    assert (read.get_x(), read.get_width(), pads.get_visible()) == (2.5, 4, False)


def test_a_model_of_ones_own_sets_cell_and_window() -> None:
    explorer = explore.window(X, LocalRNN(5, 12, "lstm"))
    window, _, cell = explorer.controls.values()
    assert (window.value, window.max, cell.value, cell.options) == (12, 12, "lstm", ("lstm",))


@pytest.mark.parametrize("x", [torch.zeros(3, 2), torch.ones(1, 1), X.double(), X.bfloat16()])
def test_any_finite_sequence_can_be_shown(x: Tensor) -> None:
    assert "its norm is" in explore.window(x).set(cell="lstm")


@pytest.mark.parametrize(
    ("x", "model", "message"),
    [
        (X[None], None, r"x: .*\(1, 9, 5\)"),
        (X / 0, None, "x: "),
        (X, LocalRNN(4, 3), r"x: .*\(9, 5\)"),
        (X.double(), LocalRNN(5, 3), "x: .*float64.*float32"),
    ],
)
def test_bad_input_is_named(x: Tensor, model: LocalRNN | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.window(x, model)


def test_the_colours_are_the_states_of_the_window_and_the_input() -> None:
    model = LocalRNN(5, 3)
    explorer = explore.window(X, model)
    text = explorer.set(window=3, position=7)
    assert f"its norm is {model(X[None])[0, 6].norm():.2f}" in text
    above, below = (ax.images[0] for ax in explorer.figure.axes[:2])
    with torch.no_grad():
        states = model.introspect(X[None])["states"][0, 6]
    assert torch.allclose(torch.tensor(below.get_array()), states.T, atol=1e-6)
    assert below.get_clim() == (-1, 1)
    left, right, *_ = above.get_extent()
    shown = torch.tensor(above.get_array())
    assert right == 9.5 and shown.shape[1] == right - left  # a column a position, the last one's last
    assert torch.equal(shown[:, -9:], X.T) and not shown[:, :-9].any()
