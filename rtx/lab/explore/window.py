"""Explorer of LocalRNN's window: what it reads, what of that is padding, how its hidden state forms.

Wang et al. (2019), R-Transformer, §3.1, Eq. 2.
"""

import ipywidgets as widgets
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.nn.functional import pad

from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS, freeze, whole_numbers
from rtx.lab.seeded import seeded
from rtx.models.rnn import TORCH
from rtx.nn import LocalRNN
from rtx.nn.recurrent import CELLS
from rtx.nn.validate import check_finite, check_positive, check_sequence

READ, PAD = COLOURS[0], COLOURS[1]  # blue, orange


def window(x: Float[Tensor, "T D"], model: LocalRNN | None = None, widest: int = 8) -> Explorer:
    """A window to slide along a sequence, with controls `window` (M), `position` (t) and `cell`.

    Args:
        x: the sequence.
        model: whose weights and cell to use, with any M; by default untrained weights for each cell.
        widest: the largest M to offer; the model's own one, if that is larger.

    Raises:
        ValueError: if `x` is not one (time, width) float sequence, is empty or not finite, or does not fit
            the model.
    """
    models = shown_models(x, model)
    start = model or models["gru"]
    widest = max(check_positive("widest", widest), start.window)
    shown = min(len(x), max(1, start.window // 2))  # a window of pads and positions, for the still picture
    picture = _Picture(x, widest)

    def update(window: int, position: int, cell: str) -> str:
        states = window_states(models[cell], x, position, window)
        picture.move(position, states.float().cpu().numpy())
        return _sentence(cell, position, window, float(states[-1].norm()))

    return Explorer(
        picture.figure,
        update,
        "slide t to the right until no pad is left; then keep t, widen M, and watch the norm",
        window=widgets.IntSlider(start.window, 1, widest, description="window M"),
        position=widgets.IntSlider(shown, 1, len(x), description="position t"),
        cell=widgets.Dropdown(options=list(models), value=start.cell, description="cell"),
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


def _sentence(cell: str, position: int, window: int, norm: float) -> str:
    first = max(1, position - window + 1)
    read = f"position {position}" if first == position else f"positions {first} to {position}"
    pads = max(0, window - position)
    padding = {0: "no pad", 1: "1 pad"}.get(pads, f"{pads} pads")
    reads = f"h_{position} of the {cell.upper()} reads {read} and {padding}"
    return f"With M = {window}, {reads}; its norm is {norm:.2f}."


class _Picture:
    """Above, the input with its window; below, under each position of it, the state after reading that."""

    def __init__(self, x: Float[Tensor, "T D"], widest: int) -> None:
        T, D = x.shape
        self.width = D
        self.figure = Figure(figsize=(7.6, 4.2), layout="constrained")
        top, bottom = self.figure.subplots(2, 1, sharex=True)
        values = pad(x.detach().float(), (0, 0, widest - 1, 0)).T.cpu().numpy()
        shown = top.imshow(values, aspect="auto", interpolation="nearest", cmap="Greys")
        shown.set_extent((1.5 - widest, T + 0.5, D + 0.5, 0.5))
        self.states = bottom.imshow([[0.0]], aspect="auto", interpolation="nearest", cmap="RdBu_r")
        self.states.set_clim(-1, 1)
        self.read, self.pads = (
            top.add_patch(Rectangle((0, 0.5), 1, D, edgecolor=colour, facecolor=(*colour, 0.2), linewidth=3))
            for colour in (READ, PAD)
        )
        for ax in (top, bottom):
            ax.axvline(0.5, color="0.5", linewidth=1, linestyle=":")
        bottom.set(xlim=(1.5 - widest, T + 0.5), ylim=(D + 0.5, 0.5))
        top.set(title="input: positions read in blue, pads in orange", ylabel="feature", yticks=[1, D])
        bottom.set(title="hidden state after each step of the window", ylabel="hidden unit", yticks=[1, D])
        bottom.set(xlabel="position (the sequence starts at 1)")
        whole_numbers(bottom.xaxis)  # the upper axis shares it
        self.figure.colorbar(shown, ax=top, label="input", ticks=shown.get_clim())
        self.figure.colorbar(self.states, ax=bottom, label="state", ticks=[-1, 0, 1])
        freeze(self.figure)

    def move(self, position: int, states: np.ndarray) -> None:
        """Set the window to end at `position`; `states` is (M, D)."""
        start = position - len(states) + 0.5
        self.pads.set_visible(start < 0.5)
        self.pads.set_x(start)
        self.pads.set_width(0.5 - start)
        self.read.set_x(max(start, 0.5))
        self.read.set_width(position + 0.5 - max(start, 0.5))
        self.states.set_data(states.T)
        self.states.set_extent((start, position + 0.5, self.width + 0.5, 0.5))
