"""Figures of the stored notebooks: alt text, and few colours. tests/faults/test_kernel.py uses a real kernel."""

from io import BytesIO

import matplotlib.pyplot as plt
import torch
from drawing import new_figure, png
from figure_extension import alt_text, smaller
from matplotlib.figure import Figure


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


def test_fewer_colours_are_hardly_others() -> None:
    figure, [ax] = new_figure(3, 2)
    ax.imshow(torch.rand(30, 30, generator=torch.Generator().manual_seed(0)).numpy())
    ax.set(xlim=(-9, 40), facecolor="0.94")  # a light grey that a coarse palette would take for white
    whole = png(figure)
    first, second = (plt.imread(BytesIO(one))[..., :3] for one in (whole, smaller(whole)))
    assert abs(first - second).max() < 0.05 and (second[0, 0] == 1).all()
