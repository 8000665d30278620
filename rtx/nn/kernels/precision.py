"""In which precision products are computed: autocast in kernels of our own, and the setting for float32."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

# "As exact": within one decimal digit. Libraries that keep float32's 24 bits add up in different orders, which moves
# the greatest error by a few times, by shape and processor: oneDNN's was 1.6 to 2.7 times that of torch's own. Factors
# rounded to tf32's 11 bits make the error of the product below 750 times as large, to bfloat16's 8 bits, 6000 times.
AS_EXACT = 10.0


def autocast_inputs(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in autocast's dtype, where it is on: as it does for a product, float64 stays."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(x if x.dtype == torch.float64 else x.to(dtype) for x in tensors)


def without_autocast(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with autocast off inside: its inputs have the dtype that it is to compute in."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        kind = next(x for x in args if isinstance(x, Tensor)).device.type
        with torch.autocast(kind, enabled=False):
            return function(*args, **kwargs)

    return inside


def general_setting() -> str | None:
    """torch's setting for float32 products; None where a device has another, as torch then refuses to tell it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


@contextmanager
def float32_cudnn() -> Iterator[None]:
    """Within it, cuDNN keeps float32's digits, as long as torch's setting for products is "highest".

    On a GPU torch rounds the factors of recurrent layers and convolutions to tf32 unless it is told not to, those of
    products only if it is told to: an LSTM would be computed less exactly, and faster, than what it is compared with.
    cuDNN's settings that were chosen by layer stay as they are.
    """
    cudnn = torch.backends.cudnn
    try:
        rounds = cudnn.allow_tf32 and general_setting() == "highest"
    except RuntimeError:  # as torch refuses to tell where recurrent layers and convolutions have different ones
        rounds = False
    if rounds:
        cudnn.allow_tf32 = False
    try:
        yield
    finally:
        if rounds:
            cudnn.allow_tf32 = True


def product_error(setting: str, device: str | torch.device = "cpu") -> float:
    """How far a product is from float64's, as a share of its greatest number, at a setting of float32 products.

    The setting is put back. It takes some hundredths of a second.
    """
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(512, 1024, generator=generator).to(device) for _ in range(2))
    exact = a.cpu().double() @ b.cpu().double().T
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        product = (a @ b.T).cpu()
    finally:
        torch.set_float32_matmul_precision(before)
    return float((product - exact).abs().max() / exact.abs().max())
