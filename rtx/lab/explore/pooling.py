"""Explorer of feed-forward attention on addition or multiplication: what it reads, where it looks, what it answers.

Raffel & Ellis (2015), §2.
"""

from collections.abc import Sequence

import torch

from rtx.lab.explore.recording import Panel, Recording, Slide, Values
from rtx.models import FeedForwardAttention
from rtx.nn.mode import evaluating
from rtx.tasks.task import Example

MARKED = 1.0  # the mask's value at the two steps that count


def pooling(model: FeedForwardAttention, examples: Sequence[Example]) -> Recording:
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

    def see(example: int) -> Values:
        inputs, target = examples[example - 1]
        x = inputs[None].to(next(model.parameters()))
        with torch.no_grad(), evaluating(model):
            answer, shares = model(x).item(), model.weights(x)[0].float().cpu()
        marked = inputs[:, 1] == MARKED
        read, looked = (list(enumerate(row, 1)) for row in (inputs[:, 0].tolist(), shares.tolist()))
        dots = [[row[t] for t in marked.nonzero().flatten().tolist()] for row in (read, looked)]
        text = _sentence(inputs[marked, 0], answer, float(target), float(shares[marked].sum()), len(inputs))
        return text, {"values": [read, dots[0]], "shares": [looked, dots[1]]}

    steps = max(len(one.inputs) for one in examples)
    return Recording(
        "Where does it look?",
        "step through the examples: does a marked step get more of the attention if its value is larger?",
        {"example": Slide("example", range(1, len(examples) + 1))},
        {
            "values": Panel("stems", "what is read", "step", "value", ("value", "marked"), x=(0, steps + 1)),
            "shares": Panel("stems", "where it looks", "step", "share", ("share", "marked"), x=(0, steps + 1)),
        },
        see,
        name="pooling",
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


def largest_share(steps: int) -> float:
    """The most that one of so many steps can have, as scores are between -1 and 1: e / (e + (T - 1) / e)."""
    most, least = torch.tensor([1.0, -1.0]).exp().tolist()
    return most / (most + (steps - 1) * least)
