"""Explorer of LocalRNN's window: what it reads, what of that is padding, and its gates and states step by step.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2.
"""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.explore.page import Page
from rtx.lab.plots import new_figure
from rtx.lab.seeded import seeded
from rtx.models.rnn import TORCH
from rtx.nn import LocalRNN
from rtx.nn.recurrent import CELLS
from rtx.nn.validate import check_finite, check_sequence

WIDEST, MOST_UNITS, MOST_STEPS = 8, 16, 40


def window(x: Float[Tensor, "T D"], model: LocalRNN | None = None) -> Page:
    """A window to slide along a sequence and to step through, cell by cell; pads are orange.

    Args:
        x: the sequence, at most 40 steps of 16 numbers.
        model: whose weights and cell to use; by default untrained weights for each cell.

    Raises:
        ValueError: if `x` is not one such sequence, is empty or not finite, or does not fit the model.
    """
    models = shown_models(x, model)
    if len(x) > MOST_STEPS or x.shape[1] > MOST_UNITS:
        raise ValueError(f"x: expected at most {MOST_STEPS} steps of {MOST_UNITS} numbers, got {tuple(x.shape)}")
    first = model or models["gru"]
    position = min(len(x), max(1, first.window // 2))
    widest = max(WIDEST, first.window)
    data = {"x": x, "cells": {name: _weights(one) for name, one in models.items()}, "windows": widest}
    return Page(
        Path(__file__).with_name("window.js"),
        data,
        _still(first, x, position),
        "step through the pads and watch the state move; untick the box; then drag the window until no pad is left",
        title="What does a window read?",
        presets={
            "No pads": {"position": min(len(x), 2 * first.window)},
            "Widest window": {"position": len(x), "window": widest, "step": widest},
        },
        cell=first.cell,
        window=first.window,
        position=position,
        step=1,
        processed=True,
    )


def shown_models(x: Float[Tensor, "T D"], model: LocalRNN | None) -> dict[str, LocalRNN]:
    """The model by its cell, or untrained ones, one for each cell and the same at every call.

    Raises:
        ValueError: if `x` is not one (time, width) float sequence, is empty or not finite, or does not fit the model.
    """
    if x.ndim != 2 or (model and x.shape[1] != model.d_model):
        width = model.d_model if model else "width"
        raise ValueError(f"x: expected one sequence (time, {width}), got {tuple(x.shape)}")
    check_sequence("x", x[None], x.shape[1], like=model.weight_ih_l0 if model else None)
    check_finite("x", x)
    if model:
        return {model.cell: model}
    with seeded(0):
        return {cell: LocalRNN(x.shape[1], 4, cell).to(x) for cell in CELLS}


def window_states(model: LocalRNN, x: Float[Tensor, "T D"], position: int, window: int) -> Float[Tensor, "M D"]:
    """The hidden state after each step of the window that ends at `position` (1 … T); the last one is h_t."""
    network = TORCH[model.cell](model.d_model, model.d_model, batch_first=True, device="meta")
    network.load_state_dict(model.state_dict(), assign=True)
    padded = pad(x, (0, 0, window - 1, 0))  # x_t stands at row t + window - 2
    with torch.no_grad():
        states, _ = network(padded[None, position - 1 : position - 1 + window])
    return states[0]


def _weights(model: LocalRNN) -> dict[str, Any]:
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return dict(zip(("w_ih", "w_hh", "b_ih", "b_hh"), (getattr(model, name).detach() for name in names), strict=True))


def _still(model: LocalRNN, x: Tensor, position: int) -> Figure:
    """The states after each step of the window."""
    states = window_states(model, x, position, model.window).float().cpu()
    figure, [ax] = new_figure(7.2, 2.4)
    extent = (position - model.window + 0.5, position + 0.5, states.shape[1] + 0.5, 0.5)
    image = ax.imshow(
        states.T.numpy(), aspect="auto", interpolation="nearest", cmap="RdBu_r", clim=(-1, 1), extent=extent
    )
    ax.set(xlabel="position that is read (below 1: a pad)", ylabel="hidden unit")
    ax.set_title(f"state after each step of the window of $h_{{{position}}}$")
    figure.colorbar(image, ax=ax, label="state")
    return figure
