"""What stands in the way of the Triton kernels, in words that one can act on. Nothing here imports Triton."""

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from rtx.nn.kernels.obstacles import no_numbers, no_own_gradient
from rtx.nn.kernels.precision import autocast_inputs
from rtx.nn.kernels.triton.plan import MOST_INPUTS, MOST_UNITS, WIDEST, shared_bytes

DTYPES = (torch.float32, torch.bfloat16)
OLDEST = (8, 0)  # the compute capability from which the tensor cores know bfloat16


def interpreting() -> bool:
    """Whether Triton is to run kernels step by step on the CPU, for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def no_triton(x: Tensor) -> str | None:
    """Why no Triton kernel with a hand-written gradient can run on the device of `x`, or None if one can."""
    said = no_own_gradient() or no_numbers(x)
    if said:
        return said
    if x.device.type != "cuda" and not (x.device.type == "cpu" and interpreting()):
        return f"it is made for CUDA devices, and x is on {x.device}"
    if not installed():
        return 'it needs Triton: pip install ".[gpu]" in the folder of rtx'
    return old_device(torch.cuda.get_device_capability(x.device)) if x.device.type == "cuda" else None


@cache
def installed() -> bool:
    """Whether there is a Triton to import."""
    return find_spec("triton") is not None


def old_device(capability: tuple[int, int]) -> str | None:
    """Why a device of this compute capability cannot run the kernels, or None if it can."""
    if capability >= OLDEST:
        return None
    return f"it needs a device of compute capability {_version(OLDEST)}, and this one has {_version(capability)}"


def no_local_rnn(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, window: int, cell: str
) -> str | None:
    """Why LocalRNN's kernels cannot take these arguments, or None if they can."""
    return no_triton(x) or no_room(w_ih.shape[1], cell, autocast_dtype(x), shared_memory(x.device))


def no_room(d_model: int, cell: str, dtype: torch.dtype, shared: int) -> str | None:
    """Why a program cannot hold the weights, of a device with so many bytes of shared memory; None if it can."""
    said = other_dtype(dtype)
    if said:
        return said
    if d_model > WIDEST:
        return f"it keeps the state on the chip up to d_model = {WIDEST}, and this is {d_model}"
    needed = shared_bytes(d_model, cell, dtype.itemsize)
    if needed <= shared:
        return None
    hint = "; under torch.autocast in bfloat16 they take a quarter" if dtype == torch.float32 else ""
    return f"its weights need {needed >> 10} KiB of shared memory, and this device has {shared >> 10}{hint}"


def no_steps(x: Tensor, *_: object) -> str | None:
    """Why the kernels between a LocalRNN's products cannot take these arguments, or None if they can."""
    return no_triton(x) or other_dtype(autocast_dtype(x))


def other_dtype(dtype: torch.dtype) -> str | None:
    """Why LocalRNN's kernels cannot compute in this dtype, or None if they can."""
    return None if dtype in DTYPES else f"it is written for float32 and bfloat16, and x is {dtype}"


def no_pooling(x: Tensor, lengths: Tensor, weight: Tensor, *_: object) -> str | None:
    """Why feed-forward attention's kernels cannot take these arguments, or None if they can."""
    said, (D, F) = no_triton(x), weight.shape
    if said:
        return said
    for one in (x, weight):
        if one.dtype not in DTYPES:
            return f"it is written for float32 and bfloat16, and there is {one.dtype}"
    if F > MOST_INPUTS or D > MOST_UNITS:
        return f"it is written for up to {MOST_INPUTS} inputs and {MOST_UNITS} units, and here are {F} and {D}"
    return None


def for_tests_alone(x: Tensor, *_: object) -> str | None:
    """Why the kernels are not the first choice on a CPU, where only their interpreter can run them."""
    return "on a CPU Triton's interpreter is for tests" if x.device.type == "cpu" else None


def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory that one program can have; the interpreter on a CPU knows no bound."""
    if device.type != "cuda":
        return 2**40
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin  # type: ignore[attr-defined]


def autocast_dtype(x: Tensor) -> torch.dtype:
    """The dtype in which `x` will be computed."""
    return autocast_inputs(x[:0])[0].dtype


def _version(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))
