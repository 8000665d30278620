"""Explorer of who sees whom: which input moves which output, in models that were not trained.

Wang et al. (2019), R-Transformer, §3 and Figure 2.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import cache

import ipywidgets as widgets
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from torch import Tensor, nn

from rtx.lab.counted import counted
from rtx.lab.explore.explorer import Explorer
from rtx.lab.jacobian import batch_first_output, changed
from rtx.lab.plots import freeze, new_figure, reach_map
from rtx.lab.seeded import seeded
from rtx.models import RNN, RTransformer, Transformer
from rtx.nn import LocalRNN
from rtx.nn.validate import check_finite, check_module, check_sequence, check_tensor

WIDTH, LENGTH = 8, 16
MOST = 2048  # numbers in a sequence: more would need gigabytes

BACKBONES: dict[str, Callable[[int, int], nn.Module]] = {
    "RNN": lambda layers, window: RNN(WIDTH, layers, "rnn"),
    "GRU": lambda layers, window: RNN(WIDTH, layers, "gru"),
    "LocalRNNs": lambda layers, window: nn.Sequential(*(LocalRNN(WIDTH, window) for _ in range(layers))),
    "Transformer": lambda layers, window: Transformer(WIDTH, layers, heads=2),
    "R-Transformer": lambda layers, window: RTransformer(WIDTH, layers, 2, window),
}
"""Backbones by the name shown, made from a number of layers and a window."""
WINDOWED = ("LocalRNNs", "R-Transformer")


def reach(mine: nn.Module | None = None, x: Float[Tensor, "1 T D"] | None = None) -> Explorer:
    """Who sees whom, with controls `model`, `layers` (L) and `window` (M).

    Args:
        mine: a causal backbone of your own, (B, T, D) to (B, T, D) or to a tuple whose first part is that, which joins
            the models as "mine". A copy of it without dropout is shown, as it is now.
        x: one sequence to show it for, at best a short one; by default 16 steps of noise as wide as its `d_model`.

    Raises:
        ValueError: if `x` is not one finite (1, T, D) float sequence of at most 2,048 numbers, is missing where
            `mine` has no `d_model`, is given without `mine`, or `mine` changes its shape.
    """
    if mine is None and x is not None:
        raise ValueError("x: it is what your own model reads, so give that, too: explore.reach(mine, x)")
    if mine is not None:
        check_module("mine", mine)
    noise = torch.randn(1, LENGTH, WIDTH, generator=torch.Generator().manual_seed(0))
    own = None if mine is None else (deepcopy(mine).cpu().eval(), _sequence(mine, x))
    figure, [ax] = new_figure(5.4, 4.3)
    image = share_map(ax, torch.ones(LENGTH, LENGTH))
    figure.draw_without_rendering()  # a square map moves when it is first laid out: its label ended left of the figure
    freeze(figure)

    @cache
    def table(model: str, layers: int, window: int) -> Tensor:
        if own is not None and model == "mine":
            return reach_at_once(*own)
        with seeded(0):
            return reach_at_once(BACKBONES[model](layers, window), noise)

    def update(model: str, layers: int, window: int) -> str:
        depth.disabled, breadth.disabled = model == "mine", model not in WINDOWED
        moved = table(model, 0 if model == "mine" else layers, window if model in WINDOWED else 0)
        show_shares(image, moved)
        settings = [model, *([f"L = {layers}"] * (model != "mine")), *([f"M = {window}"] * (model in WINDOWED))]
        ax.set_title(", ".join(settings), y=1)
        leaks = own is not None and model == "mine" and bool(changed(*own).triu(1).any())
        return sentence(moved, leaks)

    names = [*BACKBONES, *(["mine"] if own else [])]
    choice = widgets.Dropdown(options=names, value="mine" if own else "R-Transformer", description="model")
    depth = widgets.IntSlider(2, 1, 6, description="layers L")
    breadth = widgets.IntSlider(4, 1, 8, description="window M")
    caption = "set LocalRNNs, and add layers or widen M until every input reaches the last output; then R-Transformer"
    return Explorer(figure, update, caption, model=choice, layers=depth, window=breadth)


def one_sequence(x: Tensor) -> Float[Tensor, "1 T D"]:
    """`x`, on the CPU, if a reach table of it can be shown.

    Raises:
        ValueError: if `x` is not one finite (1, T, D) float sequence of at most 2,048 numbers.
    """
    check_tensor("x", x)
    if x.ndim != 3 or len(x) != 1:
        raise ValueError(f"x: expected one sequence (1, time, width), got {tuple(x.shape)}")
    check_sequence("x", x, x.shape[-1])
    check_finite("x", x)
    if x.numel() > MOST:
        raise ValueError(f"x: expected at most {MOST} numbers, time × width, got {x.numel()}: take a shorter piece")
    return x.detach().cpu()


def reach_at_once(model: nn.Module, x: Float[Tensor, "1 T D"]) -> Float[Tensor, "T T"]:
    """`rtx.lab.reach` in one backward pass, for a slider's sake: a batch of copies, an output number for each.

    Exact where the rows of a batch do not touch one another. Memory grows with (T D)².

    Raises:
        ValueError: if the output is not of the shape of the input, or a derivative is NaN or infinite.
    """
    _, T, D = x.shape
    copies = x.detach().repeat(T * D, 1, 1).requires_grad_()
    outputs = batch_first_output(model, copies)
    if not isinstance(outputs, Tensor) or outputs.shape != copies.shape:
        after = (1, *outputs.shape[1:]) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(f"model: expected a backbone that keeps the shape {(1, T, D)}, got {after}")
    if not outputs.requires_grad:  # nothing that is differentiable leads to it
        return x.new_zeros(T, T)
    chosen = outputs.flatten(1).diagonal().sum()
    (gradient,) = torch.autograd.grad(chosen, copies, allow_unused=True, materialize_grads=True)
    moved = gradient.view(T, D, T, D).square().sum((1, 3)).sqrt()
    check_finite("derivatives of the model, (output, input)", moved)
    return moved


def shares(moved: Float[Tensor, "T T"]) -> Float[Tensor, "T T"]:
    """Each row of a reach table as shares: what part of all that moves output t comes from input s."""
    return moved / moved.sum(1, keepdim=True).clamp(min=torch.finfo(moved.dtype).tiny)  # nothing moves it: all zero


def share_map(ax: Axes, moved: Float[Tensor, "T T"]) -> AxesImage:
    """A reach table as shares, with a colour bar whose few plain labels are quick to draw."""
    image = reach_map(ax, shares(moved).numpy(), "untrained")
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, label="share of what moves the output")
    bar.set_ticks([1e-4, 1e-3, 1e-2, 1e-1, 1], labels=["≤ 0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
    bar.minorticks_off()
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))  # no position 2.5
    return image


def show_shares(image: AxesImage, moved: Float[Tensor, "T T"]) -> None:
    """Put another reach table into a `share_map`."""
    end = len(moved) + 0.5
    image.set_data(shares(moved).where(moved > 0, torch.nan).float().cpu().numpy())
    image.set_extent((0.5, end, end, 0.5))


def sentence(moved: Float[Tensor, "T T"], leaks: bool = False) -> str:
    """Say what a reach table shows of the last output and of the future.

    Args:
        moved: the table.
        leaks: whether an experiment showed that an output depends on a later input.
    """
    T = len(moved)
    far = T // 2  # "far" is more than half a sequence back
    last = 100 * shares(moved)[-1]
    inputs = f"Output {T} is moved by {int((last > 0).sum())} of {counted(T, 'input')}"
    own, back = f"{last[-1]:.1f} %", f"{last[: T - 1 - far].sum():.1f} %"
    parts = f"its own makes up {own} of it, those more than {counted(far, 'step')} back {back}"
    seen = "Some outputs see the future" if leaks or bool(moved.triu(1).any()) else "No output sees the future"
    return f"{inputs}: {parts}. {seen}."


def _sequence(mine: nn.Module, x: Tensor | None) -> Tensor:
    if x is None:
        width = getattr(mine, "d_model", None)
        if not isinstance(width, int):
            raise ValueError("x: your model has no d_model, so give one sequence (1, time, width) for it to read")
        like = next(mine.parameters(), torch.zeros(()))
        return torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(0)).to(like.dtype)
    x = one_sequence(x)
    return x.to(next(mine.parameters(), x).dtype)
