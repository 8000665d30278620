"""Explorer of a digit that is read pixel by pixel: what the model believes after each of them.

Wang et al. (2019), R-Transformer, §4.1.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.counted import counted
from rtx.lab.explore.recording import Panel, Pick, Recording, Slide, Values
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite
from rtx.tasks.task import Example

MOST, SHOWN = 32, 5  # moments at which a belief is asked for; examples, since all their images are recorded


def digits(
    models: nn.Module | Mapping[str, nn.Module], examples: Sequence[Example], order: Sequence[int] | None = None
) -> Recording:
    """Read a digit step by step, with controls `model`, `example` and `read`, how many pixels were read.

    Args:
        models: one or several by name, each (B, T, 1) and lengths to the logits of ten classes, as `rtx.build` makes
            them for digits or MNIST.
        examples: of that task, at least one: square images, row by row. The first five are shown.
        order: for a permuted task, which pixel is read at each step, counted from 0; row by row if not given.

    Raises:
        ValueError: if there is no model or example, the examples are not square images of one size, the order
            is none of its pixels, or a model's logits are not ten finite numbers.
    """
    named = {"model": models} if isinstance(models, nn.Module) else dict(models)
    if not named:
        raise ValueError("models: expected at least one, got none")
    side, examples = _side(examples), [examples[i] for i in range(min(SHOWN, len(examples)))]
    places = np.arange(side * side) if order is None else np.asarray(order)
    if sorted(places.tolist()) != list(range(side * side)):
        raise ValueError(f"order: expected each of 0 … {side * side - 1} once")
    stops = moments(side * side)

    @cache
    def look(model: str, example: int) -> Tensor:
        return beliefs(named[model], examples[example - 1].inputs, stops)

    def see(model: str, example: int, read: int) -> Values:
        p, label = look(model, example), int(examples[example - 1].target)
        place, others = stops.index(read), p.clone()
        others[:, label] = 0
        lines = [list(zip(stops, row.tolist(), strict=True)) for row in (others.amax(1), p[:, label])]
        pixels = _seen(examples[example - 1].inputs[:, 0].numpy(), places, read)
        return _sentence(p, place, stops, label), {"pixels": pixels, "belief": [p[place]], "time": lines}

    return Recording(
        "When does it know?",
        "read on pixel by pixel: when does the right class take the lead, and does it keep it?",
        {
            "model": Pick("model", list(named)),
            "example": Slide("example", range(1, len(examples) + 1)),
            "read": Slide("pixels read", stops, seconds=6),
        },
        {
            "pixels": Panel("heat", "read so far", y=(-1, 1), diverging=True, share=0.8),
            "belief": Panel("bars", "belief", "class", "probability", places=[str(d) for d in range(10)], y=(0, 1)),
            "time": Panel(
                "lines",
                "belief over time",
                "pixels read",
                "probability",
                ("best other", "right"),
                y=(0, 1),
                sets="read",
            ),
        },
        see,
        name="digits",
        read=stops[len(stops) // 2],
    )


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


def _seen(x: np.ndarray, places: np.ndarray, read: int) -> np.ndarray:
    """The image from 0 to 1 as far as it is read; what is not is -0.2."""
    seen = np.full(len(x), -0.2)
    seen[places[:read]] = ((x[:read] - x.min()) / max(x.max() - x.min(), 1e-9)).round(1)
    return seen.reshape(math.isqrt(len(x)), -1)


def _sentence(p: Float[Tensor, "S 10"], place: int, stops: Sequence[int], label: int) -> str:
    best = int(p[place].argmax())
    wrong = (p.argmax(1) != label).nonzero()
    since = stops[int(wrong[-1]) + 1] if len(wrong) and int(wrong[-1]) + 1 < len(stops) else stops[0]
    right = int(p[-1].argmax()) == label
    settled = f"The right class leads for good after {counted(since, 'pixel')}" if right else "It ends wrong"
    return (
        f"After {stops[place]} of {stops[-1]} pixels it believes in {_a(best)} ({p[place, best]:.0%}); it is "
        f"{_a(label)} ({p[place, label]:.0%}). {settled}."
    )


def _a(digit: int) -> str:
    return f"an {digit}" if digit == 8 else f"a {digit}"
