"""Causality X-ray of any module: which outputs see the future, and which of its parts lets them.

Uses derivatives and changed inputs, as `rtx.lab.xray` does for the whole module.
"""

from contextlib import ExitStack
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from rtx.lab.explore.recording import Control, Panel, Recording, Seen
from rtx.lab.jacobian import check_one, first_part, output_of
from rtx.lab.jacobian import xray as look_through
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_module

WHOLE = "The whole module"
LENGTH = 12
MOST, MOST_OUTPUTS, MOST_PARTS = 2048, 512, 40  # numbers in a sequence; a backward pass each; parts to choose from
LEAKY = "Who sees the future?", "choose one part after the other: the guilty one leaks, and nothing inside it does"
CAUSAL = "How far back does each part look?", "choose one part after the other, then move the output t"
Part = tuple[nn.Module, Float[Tensor, "1 T D"]]
"""A function of a sequence, and the sequence that it reads."""


def xray(module: nn.Module, x: Float[Tensor, "1 T D"] | None = None) -> Recording:
    """Who sees whom in a module of your own, with controls `part` and `output`.

    Each part that maps a sequence to one of the same length is looked through by itself, at what it reads when the
    whole reads `x`: 40 parts at most, the outer ones first. A part is called the source of a leak if it sees the
    future and none of its own parts does.

    Args:
        module: maps (1, T, D) to (1, T, …), or to a tuple whose first part is that; it is left as it is.
        x: one short sequence; by default 12 steps of noise as wide as its `d_model`.

    Raises:
        ValueError: if `x` is not one finite (1, T, D) float sequence of at most 2,048 numbers, or missing where the
            module has no `d_model`; if the output has another length, or more than 512 numbers.
    """
    check_module("module", module)
    x = _read(module, x)
    parts = {WHOLE: (module, x)} | parts_of(module, x)
    look = cache(lambda name: look_through(*parts[name]))
    leaking = [name for name in parts if look(name).leaks]
    (title, tip), told = LEAKY if leaking else CAUSAL, _told(leaking)
    moved_by = "share of what moves an output"

    def see(part: str, output: int) -> Seen:
        seen = look(part)
        table = normalize(seen.derivatives, p=1)  # each row as shares
        # what only a changed input shows has no derivative: it gets the faintest colour
        table = torch.where(seen.changed, table.clamp(min=1e-4), table)
        row = table[output - 1]
        moves = (row.nonzero().flatten() + 1).tolist()
        inputs = f"inputs {moves[0]} to {moves[-1]}, most by {int(row.argmax()) + 1}" if moves else "no input"
        return f"{part}. {seen.verdict} Output {output} is moved by {inputs}.{told}", [
            Panel("heat", table, moved_by, "input s", "output t", y=(1e-4, 1), log=True, sets="output"),
            Panel("bars", row, "the inputs of output t", "input s", "share", y=(0, 1)),
        ]

    texts = [f"{name} (leaks)" if name in leaking else name for name in parts]
    outputs = range(1, x.shape[1] + 1)
    return Recording(
        "xray",
        title,
        tip,
        {"part": Control("part", list(parts), texts), "output": Control("output t", outputs)},
        see,
        output=x.shape[1] // 2 or 1,
    )


def parts_of(module: nn.Module, x: Float[Tensor, "1 T D"]) -> dict[str, Part]:
    """The sub-modules that read and return a sequence as long as `x`, by name, in the order in which they return.

    In a convolution of torch, time stands last, (1, D, T). Parts of very many numbers are left out.

    Raises:
        ValueError: if what the module returns has more than 512 numbers.
    """
    found: dict[str, Part] = {}

    def keep(name: str, part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        turned = isinstance(part, nn.Conv1d)
        if args and all(_is_sequence(one, x.shape[1], turned) for one in (args[0], first_part(output))):
            read = args[0].mT if turned else args[0]
            found.setdefault(name, (_Alone(part, args, kwargs, turned), read.detach()))

    with torch.no_grad(), evaluating(module), ExitStack() as hooks:
        for name, part in module.named_modules():
            if name:
                hooks.enter_context(part.register_forward_hook(partial(keep, name), with_kwargs=True))
        output = output_of(module, x)
    if output.numel() > MOST_OUTPUTS:
        raise ValueError(f"module: expected an output of at most {MOST_OUTPUTS} numbers, got {output.numel()}")
    outer = sorted(found, key=lambda name: name.count("."))[:MOST_PARTS]
    return {name: part for name, part in found.items() if name in outer}


class _Alone(nn.Module):
    """A part as the whole calls it, but with another sequence wherever the first argument is given: keys, say."""

    def __init__(self, part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], turned: bool) -> None:
        super().__init__()
        self.part, self.args, self.kwargs, self.turned = part, args, kwargs, turned

    def forward(self, x: Float[Tensor, "1 T D"]) -> Any:
        """What the part makes of another sequence."""
        x = x.mT if self.turned else x
        args = [x if one is self.args[0] else one for one in self.args]
        kwargs = {name: x if one is self.args[0] else one for name, one in self.kwargs.items()}
        output = first_part(self.part(*args, **kwargs))
        return output.mT if self.turned else output


def _is_sequence(value: Any, length: int, turned: bool) -> bool:
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.ndim != 3 or value.numel() > MOST:
        return False
    return (value.shape[0], value.shape[2 if turned else 1]) == (1, length)


def _read(module: nn.Module, x: Tensor | None) -> Float[Tensor, "1 T D"]:
    """The sequence that the module reads, like its parameters."""
    if x is None:
        if not isinstance(width := getattr(module, "d_model", None), int):
            raise ValueError("x: your module has no d_model, so give one sequence (1, time, width) for it to read")
        x = torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(0))
    check_one(module, x)
    check_finite("x", x)
    if x.numel() > MOST:
        raise ValueError(f"x: expected at most {MOST} numbers, time × width, got {x.numel()}: take a shorter piece")
    return x.detach().to(next(module.parameters(), x))


def _told(leaking: list[str]) -> str:
    """Which parts leak although none of their own parts does, in words."""
    parts = sorted({*leaking} - {WHOLE})
    sources = [name for name in parts if not any(other.startswith(f"{name}.") for other in parts)]
    if sources:
        return f" What leaks, without a part of its own that does: {', '.join(sources)}."
    return " No part that was looked at leaks by itself." if leaking else ""
