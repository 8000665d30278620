"""Explorer of LocalRNN's window: what it reads, what of that is padding, and its gates and states step by step.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2.
"""

from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor

from rtx.lab.explore.page import Page
from rtx.lab.seeded import seeded
from rtx.nn import LocalRNN
from rtx.nn.recurrent import CELLS
from rtx.nn.validate import check_finite, check_sequence

WIDEST, MOST_UNITS, MOST_STEPS = 8, 16, 40


def window(x: Float[Tensor, "T D"], model: LocalRNN | None = None) -> Page:
    """A window to slide along a sequence and to step through, cell by cell; pads are grey.

    Args:
        x: the sequence, at most 40 steps of 16 numbers.
        model: whose weights and cell to use; by default untrained weights for each cell.

    Raises:
        ValueError: if `x` is not one such sequence, is empty or not finite, or does not fit the model.
    """
    if x.ndim != 2 or len(x) > MOST_STEPS or x.shape[1] > MOST_UNITS:
        raise ValueError(f"x: expected at most {MOST_STEPS} steps of {MOST_UNITS} numbers, got {tuple(x.shape)}")
    check_sequence("x", x[None], model.d_model if model else x.shape[1], like=model.weight_ih_l0 if model else None)
    check_finite("x", x)
    with seeded(0):
        models = {model.cell: model} if model else {cell: LocalRNN(x.shape[1], 4, cell).to(x) for cell in CELLS}
    first = model or models["gru"]
    widest = max(WIDEST, first.window)
    tensors = {f"{cell}.{name}": one for cell, made in models.items() for name, one in made.state_dict().items()}
    return Page(
        "window.js",
        {"x": x, "cells": list(models), "windows": widest},
        "step through the pads and watch the state move; untick the box; then drag the window until no pad is left",
        title="What does a window read?",
        presets={
            "No pads": {"position": min(len(x), 2 * first.window)},
            "Widest window": {"position": len(x), "window": widest, "step": widest},
        },
        weights=save({name: one.float().contiguous() for name, one in tensors.items()}),
        cell=first.cell,
        window=first.window,
        position=min(len(x), max(1, first.window // 2)),
        step=1,
        processed=True,
    )
