"""Explorer of a digit that is read pixel by pixel: what the model believes after each of them.

Wang et al. (2019), R-Transformer, §4.1.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.counted import counted
from rtx.lab.explore.recording import Control, Panel, Recording, Seen
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite
from rtx.tasks.task import Example

MOST, SHOWN = 32, 5  # moments at which a belief is asked for; examples, since all their images are recorded


def digits(models: nn.Module | Mapping[str, nn.Module], examples: Sequence[Example]) -> Recording:
    """Read a digit step by step, with controls `model`, `example` and `read`, how many pixels were read.

    Args:
        models: one or several by name, each (B, T, 1) and lengths to the logits of ten classes, as `rtx.build` makes
            them for digits or MNIST.
        examples: of that task: square images, row by row. The first five are shown.

    Raises:
        ValueError: if the examples are not square images, or a model's logits are not ten finite numbers.
    """
    named = {"model": models} if isinstance(models, nn.Module) else dict(models)
    examples = [examples[i] for i in range(min(SHOWN, len(examples)))]
    shapes = sorted({tuple(example.inputs.shape) for example in examples})
    steps = max((shape[0] for shape in shapes), default=0)
    if shapes != [(math.isqrt(steps) ** 2, 1)]:
        raise ValueError(f"examples: expected square images of one size, (T, 1) pixels, got {shapes}")
    stops = moments(steps)

    @cache
    def look(model: str, example: int) -> Tensor:
        return beliefs(named[model], examples[example - 1].inputs, stops)

    def see(model: str, example: int, read: int) -> Seen:
        p, x, label = look(model, example), examples[example - 1].inputs[:, 0], int(examples[example - 1].target)
        place, others = stops.index(read), p.clone()
        others[:, label] = 0
        lines = [list(zip(stops, row.tolist(), strict=True)) for row in (others.amax(1), p[:, label])]
        names = ("best other", "right")
        return _sentence(p, place, stops, label), [
            Panel("heat", _seen(x, read), "read so far", y=(0, 1)),
            Panel("bars", p[place], f"belief (right: {label})", "class", "probability", x=(-0.5, 9.5), y=(0, 1)),
            Panel("lines", lines, "belief over time", "pixels read", names=names, y=(0, 1), sets="read"),
        ]

    controls = {
        "model": Control("model", list(named), texts=list(named)),
        "example": Control("example", range(1, len(examples) + 1)),
        "read": Control("pixels read", stops, seconds=6),
    }
    tip = "read on: when does the right class take the lead, and does it keep it?"
    return Recording("digits", "When does it know?", tip, controls, see, read=stops[len(stops) // 2])


def moments(length: int) -> list[int]:
    """After how many pixels a belief is asked for: all, or 32 at even distances, the last one always."""
    every = math.ceil(length / MOST)
    return list(range(length, 0, -every))[::-1]


def beliefs(model: nn.Module, x: Float[Tensor, "T 1"], stops: Sequence[int]) -> Float[Tensor, "S 10"]:
    """The classes' probabilities after so many steps each, to 0.1 %; what comes later is zero, and of no length.

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
    return (logits.softmax(-1) * 1000).round() / 1000


def _seen(x: Float[Tensor, " T"], read: int) -> list[list[float | None]]:
    """The image from 0 to 1 as far as it is read; None where it is not."""
    share = ((x - x.min()) / (x.max() - x.min()).clamp(min=1e-9)).round(decimals=1).tolist()
    seen, side = share[:read] + [None] * (len(x) - read), math.isqrt(len(x))
    return [seen[i : i + side] for i in range(0, len(x), side)]


def _sentence(p: Float[Tensor, "S 10"], place: int, stops: Sequence[int], label: int) -> str:
    best = int(p[place].argmax())
    right = (p.argmax(1) == label).tolist()
    settled = "It ends wrong"
    if right[-1]:
        since = max((i + 1 for i in range(len(right)) if not right[i]), default=0)
        settled = f"The right class leads for good after {counted(stops[since], 'pixel')}"
    return (
        f"After {stops[place]} of {stops[-1]} pixels the model's first choice is {best} ({p[place, best]:.0%}); "
        f"the right class is {label} ({p[place, label]:.0%}). {settled}."
    )
