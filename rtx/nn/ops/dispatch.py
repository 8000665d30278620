"""Choose among several functions that compute the same thing."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from rtx.nn.validate import check_choice

log = logging.getLogger(__name__)

_requests: list[dict[str, str]] = []  # operation → name, of each open `implementation` block, the newest last
_logged: set[tuple[str, str, str]] = set()


class Implementation(NamedTuple):
    """One way to compute an operation.

    Args:
        run: computes it.
        obstacle: takes the same arguments; returns why `run` cannot handle them here, or None if it can.
        drawback: the same for why another implementation is better here. Ignored if this one is asked for by name.
        opt_in: use it only if it is asked for by name.
    """

    run: Callable[..., Any]
    obstacle: Callable[..., str | None] = lambda *_: None
    drawback: Callable[..., str | None] = lambda *_: None
    opt_in: bool = False


class Operation:
    """A function with several implementations that agree in outputs and gradients.

    A call runs the first one that can handle the arguments, or the one that was asked for. The log says once, at level
    DEBUG, which one was chosen and why.

    Args:
        name: of the operation.
        implementations: by name, the fastest first. The last one must handle all arguments.
    """

    def __init__(self, name: str, implementations: dict[str, Implementation]) -> None:
        self.name, self.implementations = name, implementations
        OPERATIONS[name] = self

    def __call__(self, *args: Any, impl: str | None = None) -> Any:
        """Compute the operation with the implementation `impl`, or with the one that `choose` finds."""
        return self.implementations[self.choose(*args, impl=impl)].run(*args)

    def choose(self, *args: Any, impl: str | None = None) -> str:
        """Return the name of the implementation that a call with these arguments runs."""
        wanted = impl or next((one[self.name] for one in reversed(_requests) if self.name in one), None)
        if wanted is not None:
            obstacle = self.implementations[check_choice("impl", wanted, self.implementations)].obstacle(*args)
            if obstacle:
                raise ValueError(f"impl: {self.name} cannot run {wanted!r} here: {obstacle}")
            return wanted
        reasons: list[str] = []
        for name, one in self.implementations.items():
            if one.opt_in:
                continue
            reason = one.obstacle(*args) or one.drawback(*args)
            if reason is None:
                self._log(name, "; ".join(reasons) or "it is the first choice")
                return name
            reasons.append(f"not {name}: {reason}")
        raise AssertionError(f"{self.name}: the last implementation must handle all arguments")

    def _log(self, chosen: str, why: str) -> None:
        if not torch.compiler.is_compiling() and (self.name, chosen, why) not in _logged:  # logging breaks the graph
            _logged.add((self.name, chosen, why))
            log.debug("%s: %s (%s)", self.name, chosen, why)


OPERATIONS: dict[str, Operation] = {}
"""All operations by name."""


@contextmanager
def implementation(impl: str, *operations: str) -> Iterator[None]:
    """Use the implementation `impl` inside the `with` block.

    The choice holds for all threads, because a backward pass may run in a thread of its own.

    Args:
        impl: name of the implementation.
        operations: names of the operations; by default all that have such an implementation.
    """
    names = operations or tuple(name for name, one in OPERATIONS.items() if impl in one.implementations)
    if not names:
        check_choice("impl", impl, sorted({name for one in OPERATIONS.values() for name in one.implementations}))
    for name in names:
        check_choice("impl", impl, OPERATIONS[check_choice("operation", name, OPERATIONS)].implementations)
    request = dict.fromkeys(names, impl)
    _requests.append(request)
    try:
        yield
    finally:
        del _requests[next(i for i, one in enumerate(_requests) if one is request)]
