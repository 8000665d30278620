"""Alt text says what a figure shows. tests/faults/test_kernel.py stores figures in a real kernel."""

import sys

import pytest
from matplotlib.figure import Figure

from rtx.lab.inline import alt_text, keep_figures_well


def test_titles_axes_and_lines_are_said_once_each_and_maths_without_dollars() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], label="$h_t$")
    left.plot([1, 0], label="LSTM")
    left.legend()
    left.set(title="what is\nkept", xlabel="step $t$", ylabel="share (%)")
    right.set_xlabel("step $t$")
    figure.suptitle("two views")
    assert alt_text(figure) == (
        "two views. what is kept; across: step t; up: share (%); with: h_t, LSTM. across: step t"
    )
    left.set_title("on the left", loc="left")
    assert "on the left; across" in alt_text(figure)
    figure.supxlabel("steps")
    assert alt_text(figure).endswith(". steps")


def test_a_colour_bar_says_what_colours_are_and_a_bare_figure_nothing() -> None:
    figure, bare = Figure(), Figure()
    figure.colorbar(figure.subplots().imshow([[0, 1]]), label="weight")
    bare.subplots(2, 2)
    assert (alt_text(figure), alt_text(bare)) == ("colour: weight", "")


@pytest.mark.parametrize("name", ["IPython", "matplotlib_inline.backend_inline"])
def test_outside_of_a_notebook_nothing_is_imported_for_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in [one for one in sys.modules if one.split(".")[0] in ("IPython", "matplotlib_inline")]:
        monkeypatch.delitem(sys.modules, module)
    keep_figures_well()
    assert name not in sys.modules
