"""Work that is launched once and replayed: CUDA graphs, for steps that are too short for the CPU to launch in time.

A graph is a recording of kernels with the addresses they read and write. So what changes from one replay to the next
must stand at the same place, have the same shape, and be decided by no `if` on the CPU: a stream's state is written in
place, and its attention has a cache of fixed capacity, whose free positions are masked.
"""

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rtx.nn.state import Cache, FixedCache, State

log = logging.getLogger(__name__)

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""As every model has it: (x, state) -> (y, the state after it)."""

WORTH = 32  # steps from which on a stream is recorded: the recording takes as long as a few
WARM_UPS = 3  # runs before the recording: libraries choose their algorithms, Triton compiles, gradients are made


def recorded(
    run: Callable[[], object], device: torch.device | str = "cuda", undo: Callable[[], object] = lambda: None
) -> Callable[[], None]:
    """`run` as one CUDA graph: calling the result replays it, with what stands in its tensors by then.

    A whole training step can be recorded: copy each batch into the tensors that the first one lay in. Its optimiser
    must be made with `capturable=True`, and its gradients must be kept (`zero_grad(set_to_none=False)`).

    Args:
        run: reads and writes the same tensors each time, and asks the GPU for no number. Here it really runs three
            times; a fourth call is recorded only.
        device: where.
        undo: what makes each of the three as if it had not been.

    Raises:
        ValueError: if there is no CUDA device of that name, or `run` does what no graph can hold.
    """

    def once() -> None:
        torch.clear_autocast_cache()  # an autocast around all this has rounded weights, which the graph is to round
        run()
        torch.clear_autocast_cache()  # and what the graph has rounded is nobody else's

    device = torch.device(device)
    if device.type != "cuda" or not torch.cuda.is_available():
        raise ValueError(f"device: expected a CUDA device, which graphs are made for, got {str(device)!r}")
    with torch.cuda.device(device):
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM_UPS):
                once()
                undo()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        try:
            # A recording that fails does not give the stream back itself. A stream that torch would take of its own is
            # one for all recordings, on the device of the first.
            with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph, stream=beside):
                once()
        except RuntimeError as error:
            said = str(error).splitlines()[0]
            raise ValueError(f"run: expected work that a CUDA graph can hold, and torch says: {said}") from error
    return graph.replay


def following(
    step: Step, state: State, x: Tensor, steps: int, in_place: bool | None = None
) -> Callable[[Tensor], Tensor]:
    """A stream that has been begun, as a function of its next input alone; the log says at DEBUG how it is run.

    Args:
        step: of a model, in the mode it is to be used in.
        state: after what has been read so far.
        x: one input of the stream.
        steps: how many there will be at most.
        in_place: as a `FixedStream`, recorded if it is on a CUDA device. If not given, only there, for so many steps
            that it is worth it, and if the model can.

    Raises:
        ValueError: if it is asked for, and the model cannot.
    """
    if in_place or (in_place is None and x.is_cuda and steps >= WORTH):
        try:
            read = max((one.length for one in _leaves(state) if isinstance(one, Cache)), default=0)
            fixed_stream = FixedStream(step, x, state, read + steps)
            return fixed_stream.record() if x.is_cuda else fixed_stream
        except ValueError as error:
            if in_place:
                raise
            log.debug("no CUDA graph of this stream: %s", error)

    def ordinary(x: Tensor) -> Tensor:
        nonlocal state
        y, state = step(x, state)
        return y

    return ordinary


class FixedStream:
    """A stream whose state stays where it is, so that its step can be recorded; without a graph, it is that step.

    Args:
        step: of a model, in the mode it is to be used in.
        x: one input of the stream; those that follow are of its shape.
        state: after what the stream has read so far: one step at least.
        capacity: positions that its attentions have room for, those already read included.

    Raises:
        ValueError: if the state holds a number on the CPU, as that of a model that counts its positions does, or there
            is less room than what has been read.
    """

    def __init__(self, step: Step, x: Tensor, state: State, capacity: int) -> None:
        self.step, self.x, self.capacity = step, x.clone(), capacity
        self.state = fixed(state, capacity)
        # -1: any number, where there is no cache
        self.left = min((capacity - one.length for one in _leaves(state) if isinstance(one, Cache)), default=-1)
        self.y: Tensor | None = None
        self.replay: Callable[[], object] = self._advance

    def __call__(self, x: Tensor) -> Tensor:
        """The output for one more input; valid until the next call.

        Raises:
            ValueError: if the room is used up, or a tensor of the state has changed its shape.
        """
        if self.left == 0:
            raise ValueError(
                f"capacity: expected more than the {self.capacity} positions that this stream has room for"
            )
        self.left -= 1
        self.x.copy_(x)
        self.replay()
        assert self.y is not None
        return self.y

    def record(self) -> "FixedStream":
        """Make a CUDA graph of the step.

        Raises:
            ValueError: if the stream is not on a CUDA device, or a tensor of its state changes its shape.
        """
        before = [one.clone() for one in tensors(self.state)]

        def undo() -> None:
            for one, value in zip(tensors(self.state), before, strict=True):
                one.copy_(value)

        self.replay = recorded(self._advance, self.x.device, undo)
        return self

    @torch.no_grad()
    def _advance(self) -> None:
        self.y, after = self.step(self.x, self.state)
        for old, new in zip(tensors(self.state), tensors(after), strict=True):
            if old.shape != new.shape:  # as what local attention keeps, until it has a window
                raise ValueError(
                    f"state: expected tensors of one shape, got {tuple(old.shape)}, then {tuple(new.shape)}"
                )
            if old is not new:  # a cache has been written in place
                old.copy_(new)


def fixed(state: Any, capacity: int) -> Any:
    """The state in tensors of its own, with caches of that capacity.

    Raises:
        ValueError: if it holds a number on the CPU, or a cache holds more.
    """
    if isinstance(state, Cache):
        return FixedCache(state, capacity)
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, tuple):
        parts = [fixed(part, capacity) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    raise ValueError(f"state: expected tensors and caches, which can stay in place, got {type(state).__name__}")


def tensors(state: Any) -> list[Tensor]:
    """All tensors of a state, in order."""
    found = []
    for leaf in _leaves(state):
        found += [leaf.buffer, leaf.position] if isinstance(leaf, FixedCache) else [leaf]
    return found


def _leaves(state: Any) -> list[Any]:
    return [leaf for part in state for leaf in _leaves(part)] if isinstance(state, tuple) else [state]
