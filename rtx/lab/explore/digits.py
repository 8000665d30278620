"""Explorer of a digit that is read pixel by pixel: what the model believes after each of them.

Wang et al. (2019), R-Transformer, §4.1.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import ipywidgets as widgets
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from rtx.lab.counted import counted
from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS, freeze
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite
from rtx.tasks.task import Example

MOST = 64  # moments at which a belief is asked for


def digits(
    models: nn.Module | Mapping[str, nn.Module], examples: Sequence[Example], order: Sequence[int] | None = None
) -> Explorer:
    """Read a digit step by step, with controls `model`, `example` and `read`, how many pixels were read.

    Args:
        models: one or several by name, each (B, T, 1) and lengths to the logits of ten classes, as `rtx.build` makes
            them for digits or MNIST.
        examples: of that task, at least one: square images, row by row.
        order: for a permuted task, which pixel is read at each step, counted from 0; row by row if not given.

    Raises:
        ValueError: if there is no model or example, the examples are not square images of one size, the order
            is none of its pixels, or a model's logits are not ten finite numbers.
    """
    named = {"model": models} if isinstance(models, nn.Module) else dict(models)
    if not named:
        raise ValueError("models: expected at least one, got none")
    side = _side(examples)
    places = np.arange(side * side) if order is None else np.asarray(order)
    if sorted(places.tolist()) != list(range(side * side)):
        raise ValueError(f"order: expected each of 0 … {side * side - 1} once")
    stops = moments(side * side)
    picture = _Picture(side, stops)

    @cache
    def look(model: str, example: int) -> Tensor:
        return beliefs(named[model], examples[example].inputs, stops)

    def update(model: str, example: int, read: int) -> str:
        p, label = look(model, example), int(examples[example].target)
        place = next(i for i, stop in enumerate(stops) if stop >= read)
        picture.show(examples[example].inputs[:, 0].numpy(), places, p, place, label)
        return _sentence(p, place, stops, label)

    for model in named:  # a model that does not fit is told now
        look(model, 0)
    return Explorer(
        picture.figure,
        update,
        "read on pixel by pixel: when does the right class take the lead, and does it keep it?",
        model=widgets.Dropdown(options=list(named), description="model"),
        example=widgets.IntSlider(0, 0, len(examples) - 1, description="example"),
        read=widgets.IntSlider(side * side // 2, 1, side * side, description="pixels read"),
    )


def moments(length: int) -> list[int]:
    """After how many pixels a belief is asked for: all, or 64 at even distances, the last one always."""
    every = math.ceil(length / MOST)
    return list(range(length, 0, -every))[::-1]


def beliefs(model: nn.Module, x: Float[Tensor, "T 1"], stops: Sequence[int]) -> Float[Tensor, "S 10"]:
    """The classes' probabilities after so many steps each; what comes later is zero, and not counted in the length.

    Raises:
        ValueError: if the logits are not ten finite numbers.
    """
    lengths = torch.tensor(stops)
    seen = torch.arange(len(x)) < lengths[:, None]  # (S, T)
    like = next(model.parameters(), x)
    with torch.no_grad(), evaluating(model):
        logits = model((x * seen[..., None]).to(like), lengths.to(like.device)).float().cpu()
    if logits.shape != (len(stops), 10):
        raise ValueError(f"models: expected the logits of 10 classes for each sequence, got {tuple(logits.shape)}")
    check_finite("logits", logits)
    return logits.softmax(-1)


def _side(examples: Sequence[Example]) -> int:
    if not len(examples):
        raise ValueError("examples: expected at least one, got none")
    side = math.isqrt(examples[0].inputs.numel())
    for number, example in enumerate(examples):
        shape = tuple(example.inputs.shape)
        if not side or shape != (side**2, 1):
            raise ValueError(
                f"examples: expected square images, (T, 1) pixels, all of one size, got {shape} at place {number}"
            )
    return side


def _sentence(p: Float[Tensor, "S 10"], place: int, stops: Sequence[int], label: int) -> str:
    best = int(p[place].argmax())
    wrong = (p.argmax(1) != label).nonzero()
    since = stops[int(wrong[-1]) + 1] if len(wrong) and int(wrong[-1]) + 1 < len(stops) else stops[0]
    settled = (
        f"The right class leads for good after {counted(since, 'pixel')}"
        if int(p[-1].argmax()) == label
        else "It ends wrong"
    )
    return (
        f"After {stops[place]} of {stops[-1]} pixels it believes in {_a(best)} ({p[place, best]:.0%}); it is "
        f"{_a(label)} ({p[place, label]:.0%}). {settled}."
    )


def _a(digit: int) -> str:
    return f"an {digit}" if digit == 8 else f"a {digit}"


class _Picture:
    """Left, the pixels read so far; middle, the belief in each class; right, the belief in the right one over time."""

    def __init__(self, side: int, stops: Sequence[int]) -> None:
        self.stops = stops
        self.figure = Figure(figsize=(8.4, 2.9), layout="constrained")
        image, bars, line = self.figure.subplots(1, 3, width_ratios=(1, 1.2, 1.6))
        self.pixels = image.imshow(np.zeros((side, side)), cmap="Greys", vmin=0, vmax=1)
        self.pixels.set_cmap(self.pixels.get_cmap().with_extremes(bad=(*COLOURS[9], 0.35)))
        image.set(xticks=[], yticks=[], title="read so far")
        image.spines[:].set_visible(True)
        self.bars = bars.bar(range(10), [0.0] * 10)
        bars.set(xticks=range(10), ylim=(0, 1), xlabel="class", ylabel="probability", title="belief")
        (self.right,) = line.plot(stops, [0.0] * len(stops), color=COLOURS[1], label="right class")
        (self.other,) = line.plot(stops, [0.0] * len(stops), ":", color=COLOURS[0], label="best other class")
        self.now = line.axvline(stops[0], color="0.4", linewidth=1)
        line.set(ylim=(0, 1.2), yticks=[0, 0.5, 1], xlim=(0, stops[-1] + 1), xlabel="pixels read", ylabel="probability")
        line.set_title("belief over time")
        line.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)  # above the curves
        freeze(self.figure)

    def show(self, x: np.ndarray, places: np.ndarray, p: Float[Tensor, "S 10"], place: int, label: int) -> None:
        """A sequence x (T,) whose step i is the pixel `places[i]`, and the beliefs p at all moments."""
        read, side = self.stops[place], math.isqrt(len(x))
        seen = np.full(len(x), np.nan)
        seen[places[:read]] = (x[:read] - x.min()) / max(x.max() - x.min(), 1e-9)
        self.pixels.set_data(np.ma.masked_invalid(seen.reshape(side, side)))
        for digit, (bar, belief) in enumerate(zip(self.bars, p[place].tolist(), strict=True)):
            bar.set_height(belief)
            bar.set_color(COLOURS[1] if digit == label else COLOURS[0])
        others = p.clone()
        others[:, label] = 0
        self.right.set_ydata(p[:, label].numpy())
        self.other.set_ydata(others.amax(1).numpy())
        self.now.set_xdata([read, read])
