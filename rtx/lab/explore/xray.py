"""Causality X-ray of any module: which outputs see the future, and which of its parts lets them.

Uses derivatives and changed inputs, as `rtx.lab.xray` does for the whole module.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rtx.lab.explore.recording import Control, Panel, Recording, Seen
from rtx.lab.jacobian import batch_first_output, check_one, first_part
from rtx.lab.jacobian import xray as look_through
from rtx.nn.mode import evaluating
from rtx.nn.validate import check_finite, check_module

WHOLE = "The whole module"
LENGTH = 12
MOST, MOST_OUTPUTS, MOST_PARTS = 2048, 512, 40  # numbers in a sequence; a backward pass each; parts to choose from
LEAKY = "choose one part after the other: the guilty one leaks, and nothing inside it does; then move the output t"
CAUSAL = "choose one part after the other: how far does each look back? Then move the output t"


class Part(NamedTuple):
    """A sub-module as the whole calls it: a function of the sequence that it reads there."""

    function: nn.Module
    x: Float[Tensor, "1 T D"]


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
    parts = parts_of(module, x)
    found = {WHOLE: Part(module, x), **_outer(parts)}
    look = cache(lambda name: look_through(*found[name]))
    leaking = {name for name in found if look(name).leaks}
    sources = sorted(leaking - {above for name in leaking for above in found if _holds(above, name)})
    told = _told(sources, len(parts) + 1 - len(found))

    def see(part: str, output: int) -> Seen:
        seen = look(part)
        # what only a changed input shows has no derivative: it gets the faintest colour
        table = torch.where(seen.changed, shares(seen.derivatives).clamp(min=1e-4), shares(seen.derivatives))
        title = "share of what moves an output"
        return f"{part}. {seen.verdict}{told}", [
            Panel("heat", table, title, "input s", "output t", y=(1e-4, 1), log=True, sets="output"),
            Panel("bars", table[output - 1], "the inputs of output t", "input s", "share", y=(0, 1)),
        ]

    texts = [f"{name} (leaks)" if name in leaking else name for name in found]
    return Recording(
        "xray",
        "Who sees the future?",
        LEAKY if leaking else CAUSAL,
        {"part": Control("part", list(found), texts), "output": Control("output t", range(1, x.shape[1] + 1))},
        see,
        output=x.shape[1] // 2 or 1,
    )


def shares(moved: Float[Tensor, "T T"]) -> Float[Tensor, "T T"]:
    """Each row of a table of derivatives as shares: which part of all that moves output t comes from input s."""
    return moved / moved.sum(1, keepdim=True).clamp(min=torch.finfo(moved.dtype).tiny)  # nothing moves it: all zero


def parts_of(module: nn.Module, x: Float[Tensor, "1 T D"]) -> dict[str, Part]:
    """All sub-modules that read and return a sequence as long as `x`, by name, in the order in which they return.

    Time may stand last in them, (1, D, T), as in a convolution.

    Raises:
        ValueError: if what the module returns has more than 512 numbers.
    """
    found: dict[str, Part] = {}

    def watch(name: str) -> Callable[..., None]:
        def hook(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            last = isinstance(part, nn.Conv1d)
            for turned in (last, not last):
                if args and all(_sequence(one, x.shape[1], turned) for one in (args[0], first_part(output))):
                    read = args[0].mT if turned else args[0]
                    found.setdefault(name, Part(_Alone(part, args, kwargs, turned), read.detach()))
                    return

        return hook

    handles = [
        part.register_forward_hook(watch(name), with_kwargs=True) for name, part in module.named_modules() if name
    ]
    try:
        with torch.no_grad(), evaluating(module):
            output = batch_first_output(module, x)
    finally:
        for handle in handles:
            handle.remove()
    if isinstance(output, Tensor) and output.numel() > MOST_OUTPUTS:
        raise ValueError(f"module: expected an output of at most {MOST_OUTPUTS} numbers, got {output.numel()}")
    return found


def _outer(parts: dict[str, Part]) -> dict[str, Part]:
    """The parts that are looked through, in their order: not too wide, the outer ones first if there are many."""
    narrow = [name for name, part in parts.items() if part.x.numel() <= 4 * MOST_OUTPUTS]
    outer = sorted(narrow, key=lambda name: name.count("."))[:MOST_PARTS]
    return {name: parts[name] for name in narrow if name in outer}


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


def _sequence(value: Any, length: int, turned: bool) -> bool:
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.ndim != 3:
        return False
    return value.shape[:: 2 if turned else 1][:2] == (1, length)


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


def _holds(above: str, name: str) -> bool:
    """Whether a part is one of the parts of another."""
    return above != name and (above == WHOLE or name.startswith(f"{above}."))


def _told(sources: list[str], left_out: int) -> str:
    if not sources:
        return ""
    unseen = f" {left_out} parts, inner or wide ones, were not looked at." if left_out else ""
    if sources == [WHOLE]:
        return f"{unseen} No part that was looked at leaks by itself."
    return f"{unseen} What leaks, without a part of its own that does: {', '.join(sources)}."
