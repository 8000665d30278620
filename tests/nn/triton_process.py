"""Separate processes for Triton: whether it interprets its kernels is fixed when it is imported."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

Elsewhere = Callable[..., Any]
"""Takes a function of a test file and its arguments, and returns the function's result."""


def process(interpret: bool, cache: str) -> Iterator[Elsewhere]:
    """Start a process where Triton's kernels are interpreted on the CPU, or compiled into an empty cache."""
    with ProcessPoolExecutor(1, get_context("spawn"), _prepare, (interpret, cache)) as pool:
        yield lambda function, *inputs: pool.submit(function, *inputs).result()


def _prepare(interpret: bool, cache: str) -> None:
    os.environ["TRITON_CACHE_DIR"] = cache
    if interpret:
        os.environ["TRITON_INTERPRET"] = "1"
        _correct_products()


def _correct_products() -> None:
    """Versions 3.6 and 3.7 of the interpreter store bfloat16 as 16-bit integers, and multiply these integers."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def numbers(tile: Any) -> Any:
        if tile.dtype.scalar != tl.bfloat16:
            return tile.data
        return (tile.data.astype(np.uint32) << 16).view(np.float32)

    def create_dot(builder: Any, a: Any, b: Any, d: Any, *_: Any) -> Any:
        return TensorHandle(np.matmul(numbers(a), numbers(b), dtype=d.data.dtype) + d.data, d.dtype.scalar)

    InterpreterBuilder.create_dot = create_dot
