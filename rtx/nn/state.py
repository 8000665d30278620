"""What a model remembers between two steps of a stream, and how to check it, reorder it and pass it up a stack.

A state is a tuple: of tensors with the batch first, of whole numbers that say how far one is, of caches, of states.
None stands for the start of the stream. A step takes a state and returns the next; the one it took is still good.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

State = tuple[Any, ...]


@dataclass(frozen=True)
class Cache:
    """The keys and values of the past, in a buffer with room to grow: its size doubles when it is full.

    So a step of a stream copies a bounded number of positions on average, however long the stream is. Where
    gradients are recorded, each step makes a new buffer instead.

    Args:
        buffer: keys and values, (B, 2, H, C, K), where C positions have room.
        length: the positions that are filled.
        free: holds the position that may be written next, shared by the caches on this buffer. Whoever appends takes
            it out first, in one step even for threads; a cache that does not find its own end there copies the buffer.
            So one state can be continued in two ways.
    """

    buffer: Float[Tensor, "B 2 H C K"]
    length: int = 0
    free: dict[int, bool] = field(default_factory=lambda: {0: True}, compare=False)

    @property
    def keys(self) -> Float[Tensor, "B H T K"]:
        """The keys of the past."""
        return self.buffer[:, 0, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "B H T K"]:
        """The values of the past."""
        return self.buffer[:, 1, :, : self.length]

    @property
    def mask(self) -> None:
        """All of these may be looked at."""
        return None

    def append(self, keys: Float[Tensor, "B H T K"], values: Float[Tensor, "B H T K"]) -> "Cache":
        """This cache with more positions behind it."""
        new = torch.stack([keys, values], 1)
        end = self.length + new.shape[3]
        if torch.is_grad_enabled():
            return Cache(torch.cat([self.buffer[:, :, :, : self.length], new], 3), end, {end: True})
        buffer, free = self.buffer, self.free
        foreign = buffer.is_inference() and not torch.is_inference_mode_enabled()  # torch lets none write into it here
        if end > buffer.shape[3] or foreign or not self.free.pop(self.length, False):
            B, _, H, _, K = buffer.shape
            buffer, free = new.new_empty(B, 2, H, max(16, 2 * end), K), {}
            buffer[:, :, :, : self.length] = self.buffer[:, :, :, : self.length]
        buffer[:, :, :, self.length : end] = new
        free[end] = True
        return Cache(buffer, end, free)


class FixedCache:
    """A cache of C positions that is written in place and says by a mask which of them are filled.

    Where it stands, what shape it has and what is done with it are the same at each step, as a CUDA graph needs it
    (`rtx.nn.kernels.graphs`). The state before a step is lost, and gradients are not recorded.

    Args:
        cache: what it begins with.
        capacity: C.

    Raises:
        ValueError: if the cache holds more.
    """

    def __init__(self, cache: Cache, capacity: int) -> None:
        B, _, H, _, K = cache.buffer.shape
        if cache.length > capacity:
            raise ValueError(f"capacity: expected room for the {cache.length} positions that were read, got {capacity}")
        self.buffer = cache.buffer.new_zeros(B, 2, H, capacity, K)
        self.buffer[:, :, :, : cache.length] = cache.buffer[:, :, :, : cache.length]
        self.position = torch.tensor([cache.length], device=self.buffer.device)  # where the next one goes

    @property
    def keys(self) -> Float[Tensor, "B H C K"]:
        """The keys of the past, and zeros."""
        return self.buffer[:, 0]

    @property
    def values(self) -> Float[Tensor, "B H C K"]:
        """The values of the past, and zeros."""
        return self.buffer[:, 1]

    @property
    def mask(self) -> Bool[Tensor, "1 C"]:
        """The filled positions."""
        return (torch.arange(self.buffer.shape[3], device=self.buffer.device) < self.position)[None]

    @property
    def length(self) -> int:
        """Unknown.

        Raises:
            ValueError: always.
        """
        raise ValueError("state: this model counts its positions on the CPU, which it cannot do with a fixed cache")

    def append(self, keys: Float[Tensor, "B H 1 K"], values: Float[Tensor, "B H 1 K"]) -> "FixedCache":
        """This cache, with one more position filled."""
        self.buffer.index_copy_(3, self.position, torch.stack([keys, values], 1))
        self.position.add_(1)
        return self


def empty_cache(like: Float[Tensor, "B H T K"]) -> Cache:
    """A cache without a position, for keys like these."""
    B, H, _, K = like.shape
    return Cache(like.new_empty(B, 2, H, 0, K))


def check_state(state: State, *shapes: tuple[int | None, ...] | None) -> None:
    """Check that `state` is a tuple of tensors of these shapes, (B, None) leaving a size open; None is a whole number.

    Raises:
        ValueError: if it is another model's, or another batch's.
    """
    # of a part that is neither, as another model's may be, the type: a tuple is none of sizes
    found = [tuple(p.shape) if isinstance(p, Tensor) else p if isinstance(p, int) else type(p) for p in parts(state)]
    fits = len(found) == len(shapes) and all(map(_fits, found, shapes))
    if not fits:
        raise ValueError(
            f"state: expected tensors of shapes {_written(shapes)} for this model and batch, got {_written(found)}"
        )


def check_cache(state: object, batch: int, heads: int, width: int) -> Cache | FixedCache:
    """Return `state` if it is the cache of such an attention and batch.

    Raises:
        ValueError: otherwise.
    """
    if not isinstance(state, Cache | FixedCache):
        raise ValueError(f"state: expected a cache of keys and values, got {type(state).__name__}")
    B, _, H, _, K = state.buffer.shape
    if (batch, heads, width) != (B, H, K):
        raise ValueError(
            f"state: expected a cache of {batch} sequences, {heads} heads of width {width} for this model and batch, "
            f"got one of {B} sequences, {H} heads of width {K}"
        )
    return state


def parts(state: object) -> tuple[Any, ...]:
    """The parts of a state that is a tuple.

    Raises:
        ValueError: if it is no tuple.
    """
    if not isinstance(state, tuple):
        raise ValueError(f"state: expected what this model's last step returned, got {type(state).__name__}")
    return state


def map_state(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    """The state with `function` applied to each of its tensors; a cache's is (B, 2, H, T, K).

    A cache gives up its room to grow: what shares its numbers, as `detach` does, must not write behind them.
    """
    if isinstance(state, Tensor):
        return function(state)
    if isinstance(state, Cache):
        return Cache(function(state.buffer[:, :, :, : state.length]), state.length, {state.length: True})
    if isinstance(state, FixedCache):
        raise ValueError("state: a fixed cache stays where it is")
    if isinstance(state, tuple):
        mapped = [map_state(function, part) for part in state]
        return type(state)(*mapped) if hasattr(state, "_fields") else tuple(mapped)
    return state


def select(state: Any, rows: Int[Tensor, " R"]) -> Any:
    """The state of the batch that consists of these rows of this one: repeated, reordered, left out."""
    return map_state(lambda tensor: tensor.index_select(0, rows), state)


def detach(state: Any) -> Any:
    """The state, with no way back for gradients: what is carried from one piece of a long text to the next."""
    return map_state(Tensor.detach, state)


def split(state: State | None, layers: int) -> tuple[Any, ...]:
    """Each layer's part of a stack's state; None for each at the start.

    Raises:
        ValueError: if `state` is not one of so many layers.
    """
    found = (None,) * layers if state is None else parts(state)
    if len(found) != layers:
        raise ValueError(f"state: expected one of {layers} layers, got one of {len(found)}")
    return found


def steps_so_far(state: Any, attention: int = 0) -> int:
    """How many positions a stream of layers has read: what the layer of that number, an attention, has cached."""
    return getattr(state[attention], "length", 0) if isinstance(state, tuple) and len(state) > attention else 0


def step_through(
    layers: Iterable[nn.Module], x: Float[Tensor, "B D"], state: State | None
) -> tuple[Float[Tensor, "B D"], State]:
    """One step of layers that stand on one another, each with its own part of the state.

    Raises:
        ValueError: if `state` is not one of such a stack.
    """
    layers, after = list(layers), []
    for layer, part in zip(layers, split(state, len(layers)), strict=True):
        x, part = layer.step(x, part)  # type: ignore[operator]
        after.append(part)
    return x, tuple(after)


def read_through(
    layers: Iterable[Callable[..., Any]], x: Float[Tensor, "B T D"], state: State | None, dropout: nn.Module
) -> tuple[Float[Tensor, "B T D"], State]:
    """A piece of a stream through recurrent layers, (x, part) → (x, part), with dropout between them.

    Raises:
        ValueError: if `state` is not one of such a stack.
    """
    layers, after = list(layers), []
    for i, (layer, part) in enumerate(zip(layers, split(state, len(layers)), strict=True)):
        x, part = layer(dropout(x) if i else x, part)
        after.append(part)
    return x, tuple(after)


def _fits(found: object, shape: tuple[int | None, ...] | None) -> bool:
    if shape is None:
        return isinstance(found, int)
    if not isinstance(found, tuple) or len(found) != len(shape):
        return False
    return all(expected is None or size == expected for size, expected in zip(found, shape, strict=True))


def _written(shapes: Iterable[object]) -> str:
    def text(one: object) -> str:
        if isinstance(one, tuple):
            return str(one).replace("None", "any")
        return one.__name__ if isinstance(one, type) else "whole number"

    return ", ".join(map(text, shapes)) or "none"
