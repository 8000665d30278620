"""Which of several functions that compute the same is used: by what the arguments allow, or by one's own choice."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import torch

from rtx.nn.validate import check_choice

log = logging.getLogger(__name__)

_choices: list[dict[str, str]] = []  # operation → implementation, of each `implementation` that is open
_wanted: dict[str, str] = {}  # what they come to: the one that was opened last counts
_choosing = Lock()
_told: set[tuple[str, str, str]] = set()  # what the log has said


class Kernel(NamedTuple):
    """One implementation of an operation.

    Args:
        run: computes it.
        obstacle: takes the same arguments; why `run` cannot take them here, or None if it can.
        drawback: the same; why another one is better here, which does not count where this one is asked for.
    """

    run: Callable[..., Any]
    obstacle: Callable[..., str | None] = lambda *_, **__: None
    drawback: Callable[..., str | None] = lambda *_, **__: None


class Operation:
    """A function with several implementations that agree in outputs and gradients.

    Calling it runs the first that nothing stands in the way of, or the one that `implementation` or the argument
    `impl` names. The log says, at level DEBUG, what was chosen and why, once for each reason.

    Args:
        name: of the function.
        kernels: by name, the fastest first; the last one takes everything.
        optional: names that are used only when asked for, such as the slow twin.
    """

    def __init__(self, name: str, kernels: dict[str, Kernel], optional: tuple[str, ...] = ()) -> None:
        self.name, self.kernels, self.optional = name, kernels, optional
        OPERATIONS[name] = self

    def __call__(self, *args: Any, impl: str | None = None, **options: Any) -> Any:
        """Compute the function.

        Raises:
            ValueError: if there is no such implementation, or it cannot take the arguments.
        """
        return self.kernels[self.choose(*args, impl=impl, **options)].run(*args, **options)

    def choose(self, *args: Any, impl: str | None = None, **options: Any) -> str:
        """The name of the implementation that a call with these arguments runs.

        Raises:
            ValueError: as a call.
        """
        wanted = impl or _wanted.get(self.name)
        if wanted is not None:
            obstacle = self.kernels[check_choice("impl", wanted, self.kernels)].obstacle(*args, **options)
            if obstacle:
                raise ValueError(f"impl: {self.name} cannot be {wanted!r} here: {obstacle}")
            return wanted
        reasons: list[str] = []
        for name, kernel in self.kernels.items():
            if name in self.optional:
                continue
            reason = kernel.obstacle(*args, **options) or kernel.drawback(*args, **options)
            if reason is None:
                return self._tell(name, "; ".join(reasons) or "nothing stands in its way")
            reasons.append(f"not {name}: {reason}")
        raise AssertionError(f"{self.name}: its last implementation must take every argument")

    def _tell(self, chosen: str, why: str) -> str:
        if not torch.compiler.is_compiling() and (self.name, chosen, why) not in _told:  # a log breaks the graph
            _told.add((self.name, chosen, why))
            log.debug("%s: %s (%s)", self.name, chosen, why)
        return chosen


OPERATIONS: dict[str, Operation] = {}
"""Every operation with a choice, by its name."""


@contextmanager
def implementation(impl: str, *operations: str) -> Iterator[None]:
    """Within it, these operations, or all that have one of that name, use the implementation `impl`.

    The choice is one for all threads, as neither `torch.compile` nor a backward pass on a GPU, which has a thread of
    its own, could see one of a single thread. Of several that are open at once the one opened last counts, in whatever
    order they end.

    Raises:
        ValueError: if an operation is unknown, or has no such implementation.
    """
    names = operations or tuple(name for name, one in OPERATIONS.items() if impl in one.kernels)
    if not names:
        check_choice("impl", impl, sorted({name for one in OPERATIONS.values() for name in one.kernels}))
    for name in names:
        check_choice("operation", name, OPERATIONS)
        check_choice("impl", impl, OPERATIONS[name].kernels)
    choice = dict.fromkeys(names, impl)
    with _choosing:
        _choices.append(choice)
        _settle()
    try:
        yield
    finally:
        with _choosing:
            _choices[:] = [one for one in _choices if one is not choice]  # an equal one of another thread stays
            _settle()


def _settle() -> None:
    global _wanted  # in one step, so that a call in another thread sees the old or the new
    _wanted = {operation: impl for choice in _choices for operation, impl in choice.items()}
