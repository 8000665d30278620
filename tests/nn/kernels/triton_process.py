"""Processes of their own for Triton: its interpreter is chosen, once for all, when it is imported."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

Elsewhere = Callable[..., Any]
"""Takes a function of a test file and its arguments, and returns what it returns."""


def process(interpret: bool, cache: str) -> Iterator[Elsewhere]:
    """A process in which Triton's kernels run step by step on the CPU, or in which its compiler has an empty cache."""
    with ProcessPoolExecutor(1, get_context("spawn"), _prepare, (interpret, cache)) as pool:
        yield lambda function, *inputs: pool.submit(function, *inputs).result()


def _prepare(interpret: bool, cache: str) -> None:
    os.environ["TRITON_CACHE_DIR"] = cache
    if interpret:
        os.environ["TRITON_INTERPRET"] = "1"
        _right_products()


def _right_products() -> None:
    """Triton's interpreter keeps bfloat16 as whole numbers of 16 bits, and multiplies these (versions 3.6 and 3.7)."""
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
