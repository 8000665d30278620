"""Build the network that a file describes, without trusting the file: it costs no more than the file's own tensors."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

Shapes = dict[str, tuple[int, ...]]
LARGEST = 2**24
"""No size of a model comes near it: a larger one is a fault, or a trap."""
TIMES = 8  # a tensor may be registered so often and be stored once: tied embeddings, weights that another layer takes


def rebuild(make: Callable[[], nn.Module], given: Shapes, shapes: Callable[[nn.Module], Shapes]) -> nn.Module:
    """`make()`, once it is known to need the tensors that are given, and no others.

    It is made on torch's "meta" device first, where a tensor has a shape and no memory, and given up as soon as it has
    more numbers than the file: sizes that the file only claims reserve nothing.

    Args:
        make: builds the network.
        given: shape of each tensor in the file.
        shapes: those of a network.

    Raises:
        ValueError: if they differ, naming the tensors.
    """
    stored = sum(torch.Size(shape).numel() for shape in given.values())
    with torch.device("meta"), at_most(TIMES * stored):
        expected = shapes(make())
    if expected != given:
        odd = sorted({name for name, _ in expected.items() ^ given.items()})
        raise ValueError(f"missing, unknown or of another shape: {odd}")
    return make()


@contextmanager
def at_most(numbers: int) -> Iterator[None]:
    """Refuse parameters beyond so many numbers, in networks that this thread makes meanwhile.

    Raises:
        ValueError: at the first one too many.
    """
    here, found = threading.get_ident(), 0

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal found
        if parameter is not None and threading.get_ident() == here:
            found += parameter.numel()
            if found > numbers:
                raise ValueError(f"its sizes ask for more than the {numbers // TIMES} numbers that it holds")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def check_sizes(name: str, arguments: Any) -> None:
    """Check that each argument is a word, a flag or a number of a size that models have; a whole `seed` has none.

    Raises:
        ValueError: naming `name` and the argument, otherwise.
    """
    if not isinstance(arguments, dict):
        raise ValueError(f"{name}: expected arguments by name, got {type(arguments).__name__}")
    for key, value in arguments.items():
        if key == "seed" and isinstance(value, int):
            continue
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | int | float | None) or (isinstance(one, int | float) and abs(one) > LARGEST):
                raise ValueError(f"{name}: expected {key} to be a word or a number up to {LARGEST}, got {one!r:.60}")
