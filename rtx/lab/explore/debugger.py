"""The window debugger: one window of a LocalRNN, cell by cell, computed in the page from the weights.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2.
"""

from pathlib import Path
from typing import Any

from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from rtx.lab.explore.page import Page
from rtx.lab.explore.window import shown_models, window_states
from rtx.lab.plots import new_figure
from rtx.nn import LocalRNN

SCRIPT = Path(__file__).with_name("debugger.js")
WIDEST, MOST_UNITS, MOST_STEPS = 8, 16, 40
MOST_LABELS = 16  # that the still figure has room for


def debugger(x: Float[Tensor, "T D"], model: LocalRNN | None = None) -> Page:
    """Step one window: inputs, gates and state as colours, pads in orange, read by the cell or left out.

    Args:
        x: the sequence, at most 40 steps of 16 numbers.
        model: whose weights and cell to use; by default untrained weights for each cell.

    Raises:
        ValueError: if `x` is not one such sequence, is empty or not finite, or does not fit the model.
    """
    models = shown_models(x, model)
    if len(x) > MOST_STEPS or x.shape[1] > MOST_UNITS:
        raise ValueError(f"x: expected at most {MOST_STEPS} steps of {MOST_UNITS} numbers, got {tuple(x.shape)}")
    start = model or models["gru"]
    position = min(len(x), max(1, start.window // 2))
    state = {"cell": start.cell, "window": start.window, "position": position, "step": 1, "processed": True}
    data = {
        "x": x,
        "cells": {name: _weights(one) for name, one in models.items()},
        "windows": max(WIDEST, start.window),
    }
    caption = "step through the pads and watch the state move; untick the box; then slide t until no pad is left"
    return Page(SCRIPT, data, _still(start, x, position), caption, **state)


def _weights(model: LocalRNN) -> dict[str, Any]:
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return dict(zip(("w_ih", "w_hh", "b_ih", "b_hh"), (getattr(model, name).detach() for name in names), strict=True))


def _still(model: LocalRNN, x: Tensor, position: int) -> Figure:
    """The states after each step of the window."""
    states = window_states(model, x, position, model.window).float().cpu()
    figure, [ax] = new_figure(7.2, 2.4)
    image = ax.imshow(states.T.numpy(), aspect="auto", interpolation="nearest", cmap="RdBu_r", vmin=-1, vmax=1)
    units = states.shape[1]
    ax.set_yticks([0, units - 1], ["1", str(units)])
    first = position - model.window + 1
    names = ["pad" if s < 1 else str(s) for s in range(first, position + 1)]
    shown = range(model.window - 1, -1, -model.window // MOST_LABELS)[::-1]  # from the last one back
    ax.set_xticks(shown, [names[step] for step in shown])
    ax.set(
        xlabel="position that is read",
        ylabel="hidden unit",
        title=f"state after each step of the window of $h_{{{position}}}$",
    )
    figure.colorbar(image, ax=ax, label="state")
    return figure
