"""The window debugger's data, and what it refuses."""

from itertools import pairwise

import pytest
import torch

from rtx.lab import explore
from rtx.nn import LocalRNN

X = torch.randn(7, 5)


def test_it_holds_every_cell_or_the_one_of_a_model():
    assert list(explore.debugger(X).data["cells"]) == ["rnn", "gru", "lstm"]
    page = explore.debugger(X, LocalRNN(5, 12, "lstm"))
    assert list(page.data["cells"]) == ["lstm"]
    assert (page.state["cell"], page.state["window"], page.data["windows"]) == ("lstm", 12, 12)
    assert "image/png" in page._repr_mimebundle_()[0]


def test_the_still_figure_has_the_states_of_the_window_below_what_was_read():
    model = LocalRNN(5, 4)
    with torch.no_grad():
        states = model.introspect(X[None])["states"][0, 1]  # of the window that ends at position 2
    ax, bar = explore.debugger(X, model).still.axes
    torch.testing.assert_close(torch.tensor(ax.images[0].get_array()), states.T)
    assert ax.images[0].get_clim() == (-1, 1) and bar.get_ylabel() == "state"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["pad", "pad", "1", "2"]
    assert "$h_{2}$" in ax.get_title("left") + ax.get_title("center")


@pytest.mark.parametrize("x", [torch.randn(3, 4), torch.randn(41, 5), torch.full((3, 5), torch.nan)])
def test_what_cannot_be_shown_is_named(x):
    with pytest.raises(ValueError, match="x: "):
        explore.debugger(x, LocalRNN(5, 3))


def test_a_wide_windows_positions_have_room_in_the_still_figure():
    page = explore.debugger(torch.randn(40, 3), LocalRNN(3, 40))
    ax = page.still.axes[0]
    page.still.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert len(boxes) > 10 and all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert [label.get_text() for label in ax.get_xticklabels()][-1] == "20"
