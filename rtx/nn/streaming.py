"""The state of a stream: what a model remembers between two steps.

A module that reads a sequence piece by piece returns a state with each piece and takes it back with the next. A state
is a tuple. Its parts can be of three kinds: tensors, whose first axis is the batch; whole numbers, which count
positions; and other states. Before the first position, the state is `None`. Reading does not modify the state that it
receives, so you can use the same state again.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

State = tuple[Any, ...]
WHOLE = (int, torch.SymInt)  # the second is a number that an exported program leaves open


class Streaming(Protocol):
    """A module that can read a sequence piece by piece.

    `read` may compute its output without a call of `forward`. The module's own forward hooks then do not fire, but
    those of the linear layers inside do.
    """

    def read(self, x: Float[Tensor, "B T D"], state: Any = None) -> tuple[Float[Tensor, "B T D"], Any]:
        """Read the next T positions; return their outputs and the next state."""
        ...


def check_state(state: object, *shapes: tuple[int | None, ...] | None) -> None:
    """Raise a ValueError if the parts of a state do not fit.

    There is one shape for each part. The shape (8, None) allows any second axis. For a whole number, pass None.
    """
    found = [_form(part) for part in checked_tuple(state)]
    if len(found) != len(shapes) or not all(map(_fits, found, shapes)):
        expected = [
            "a number" if shape is None else tuple("any" if n is None else n for n in shape) for shape in shapes
        ]
        raise ValueError(f"state: expected {expected} for this model and batch size, got {found}")


def _form(part: object) -> object:
    """Return a tensor's shape, a number as it is, and of anything else the name of its type."""
    if isinstance(part, Tensor):
        return tuple(part.shape)
    return part if isinstance(part, WHOLE) else type(part).__name__


def checked_tuple(state: object) -> State:
    """Return the state, after a check that it is a tuple."""
    if not isinstance(state, tuple):
        raise ValueError(f"state: expected a state that this model returned, got {type(state).__name__}")
    return state


def split(state: State | None, parts: int) -> State:
    """Return the parts of a state, such as one for each layer of a stack. If `state` is None, every part is None."""
    found = (None,) * parts if state is None else checked_tuple(state)
    if len(found) != parts:
        raise ValueError(f"state: expected {parts} parts for this model, got {len(found)}")
    return found


def readers(bricks: Iterable[nn.Module]) -> list[Callable[..., tuple[Tensor, Any]]]:
    """Return the `read` of each brick."""
    return [cast(Streaming, brick).read for brick in bricks]


def read_through(
    layers: Iterable[Callable[..., tuple[Tensor, Any]]],
    x: Float[Tensor, "B T D"],
    state: State | None,
    dropout: nn.Module | None = None,
) -> tuple[Float[Tensor, "B T D"], State]:
    """Read positions through a stack of layers, each with its part of the state.

    Args:
        layers: each maps (x, its state) to (y, its next state), such as `read` of a brick.
        x: the positions.
        state: the state of the whole stack.
        dropout: applied between two layers.
    """
    layers, after = list(layers), []
    for i, (layer, part) in enumerate(zip(layers, split(state, len(layers)), strict=True)):
        x, part = layer(dropout(x) if i and dropout else x, part)
        after.append(part)
    return x, tuple(after)


def map_state(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    """Return the state with `function` applied to each of its tensors."""
    if isinstance(state, Tensor):
        return function(state)
    if isinstance(state, tuple):
        mapped = [map_state(function, part) for part in state]
        return tuple(mapped)
    return state


def select(state: Any, rows: Int[Tensor, " R"]) -> Any:
    """Return the state of a new batch that consists of these rows of the old one. A row may be repeated."""
    return map_state(lambda tensor: tensor.index_select(0, rows), state)


def detach(state: Any) -> Any:
    """Return the state detached from the graph, to train on a long sequence piece by piece."""
    return map_state(torch.Tensor.detach, state)


def _fits(found: object, shape: tuple[int | None, ...] | None) -> bool:
    if shape is None:
        return isinstance(found, WHOLE)
    if not isinstance(found, tuple) or len(found) != len(shape):
        return False
    return all(expected is None or size == expected for size, expected in zip(found, shape, strict=True))
