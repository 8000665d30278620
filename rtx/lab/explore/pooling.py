"""Explorer of feed-forward attention on addition or multiplication: what it reads, where it looks, what it answers.

Raffel & Ellis (2015), §2.
"""

from collections.abc import Sequence

import ipywidgets as widgets
import torch
from matplotlib.figure import Figure

from rtx.lab.explore.explorer import Explorer
from rtx.lab.plots import COLOURS, freeze
from rtx.models import FeedForwardAttention
from rtx.nn.mode import evaluating
from rtx.tasks.task import Example

MARKED = 1.0  # the mask's value at the two steps that count


def pooling(model: FeedForwardAttention, examples: Sequence[Example]) -> Explorer:
    """One sequence after the other, with the control `example`: its values, and each step's share of the context.

    Args:
        model: of `add` or `multiply`, trained or not.
        examples: of that task, at least one.

    Raises:
        ValueError: if there is no example, or one is not of a value and a mask a step, two of them marked, and of one
            number to tell.
    """
    if not len(examples) or not all(map(_is_of_two_marked, examples)):
        raise ValueError(
            "examples: expected sequences of `add` or `multiply`, steps of (value, mask), two marked, and one target"
        )
    picture = _Picture(examples)

    def update(example: int) -> str:
        inputs, target = examples[example]
        x = inputs[None].to(next(model.parameters()))
        with torch.no_grad(), evaluating(model):
            answer, shares = model(x).item(), model.weights(x)[0].float().cpu()
        marked = inputs[:, 1] == MARKED
        picture.show(inputs, marked, shares)
        return _sentence(inputs[marked, 0], answer, float(target), float(shares[marked].sum()), len(inputs))

    return Explorer(
        picture.figure,
        update,
        "step through the examples: does a marked step get more of the attention if its value is larger?",
        example=widgets.IntSlider(0, 0, len(examples) - 1, description="example"),
    )


def _is_of_two_marked(one: Example) -> bool:
    steps = one.inputs.shape[1:] == (2,) and one.target.shape == (1,)
    return steps and int((one.inputs[:, 1] == MARKED).sum()) == 2


def _sentence(values: torch.Tensor, answer: float, target: float, share: float, steps: int) -> str:
    first, second = values.tolist()
    return (
        f"Marked are {first:z.2f} and {second:z.2f}: the answer is {answer:z.2f}, it should be {target:z.2f}. The two "
        f"have {share:.0%} of the attention; an even share would be {2 / steps:.0%}."
    )


class _Picture:
    """Above, the values, the marked ones as dots; below, the shares, with what an even one would be."""

    def __init__(self, examples: Sequence[Example]) -> None:
        lengths = [len(one.inputs) for one in examples]
        low = min(0.0, *(one.inputs[:, 0].min().item() for one in examples))
        self.figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        top, bottom = self.figure.subplots(2, 1, sharex=True)
        self.values = top.vlines([], 0, 1, color="0.7", linewidth=1)
        (self.marked,) = top.plot([], [], "o", color=COLOURS[1], label="marked")
        self.shares = bottom.vlines([], 0, 1, color=COLOURS[0], linewidth=2)
        (self.even,) = bottom.plot([], [], ":", color="0.4", linewidth=1)
        top.set(ylim=(low - 0.05, 1.05), ylabel="value", title="what is read: marked values in orange")
        top.axhline(0, color="0.4", linewidth=0.8)
        bottom.set(xlim=(0, max(lengths) + 1), ylim=(0, 1.05 * largest_share(min(lengths))))
        bottom.set(ylabel="share", xlabel="step", title="where it looks: each step's share of the context")
        freeze(self.figure)

    def show(self, inputs: torch.Tensor, marked: torch.Tensor, shares: torch.Tensor) -> None:
        """One sequence (T, 2), which steps of it are marked (T,), and their shares (T,)."""
        steps, values = range(1, len(inputs) + 1), inputs[:, 0].tolist()
        self.values.set_segments([[(t, 0), (t, value)] for t, value in zip(steps, values, strict=True)])
        self.marked.set_data([t for t, one in zip(steps, marked, strict=True) if one], inputs[marked, 0].tolist())
        self.shares.set_segments([[(t, 0), (t, share)] for t, share in zip(steps, shares.tolist(), strict=True)])
        self.even.set_data([1, len(inputs)], [1 / len(inputs)] * 2)


def largest_share(steps: int) -> float:
    """The most that one of so many steps can have, as scores are between -1 and 1: e / (e + (T - 1) / e)."""
    most, least = torch.tensor([1.0, -1.0]).exp().tolist()
    return most / (most + (steps - 1) * least)
