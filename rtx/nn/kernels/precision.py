"""In which precision products are computed: autocast in kernels of our own, and the setting for float32."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

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


class Product(NamedTuple):
    """How a product of float32 matrices did: seconds, and the greatest error as a share of the greatest number."""

    seconds: float
    error: float


@contextmanager
def fast_matmul(device: str | torch.device = "cpu") -> Iterator[str]:
    """Within it, float32 products run at the setting "medium", if that is faster here and as exact; else as before.

    On some CPUs "medium" only means another library, oneDNN, with the same sums; on those with units for bfloat16,
    and on GPUs, it means fewer digits, and is declined. Which it is, a product of known result tells (0.1 s). The
    choice of a setting other than torch's own, "highest", is left as it is, as is that of one for a device, such as
    `torch.backends.cuda.matmul.fp32_precision`. The log says what was chosen and why.

    Args:
        device: where the products will be.

    Yields:
        The setting within; "by device" where devices have their own.
    """
    before = general_setting()
    if before is None:
        log.info("float32 products: by device (chosen before)")
        yield "by device"
        return
    chosen, why = choose_setting(before, lambda setting: probe(setting, device))
    log.info("float32 products on %s: %r (%s)", torch.device(device).type, chosen, why)
    torch.set_float32_matmul_precision(chosen)
    try:
        yield chosen
    finally:
        torch.set_float32_matmul_precision(before)


def choose_setting(before: str, measure: Callable[[str], Product]) -> tuple[str, str]:
    """The setting for products, and why; `measure` tells how a product does at a setting."""
    if before != "highest":
        return before, "chosen before"
    plain, medium = measure("highest"), measure("medium")
    gain = plain.seconds / medium.seconds
    if medium.error > AS_EXACT * plain.error:
        return before, f"'medium' is {gain:.2f} times as fast, but its error {medium.error:.0e}, not {plain.error:.0e}"
    if gain < 1.1:
        return before, f"'medium' is not faster: {gain:.2f} times"
    return "medium", f"{gain:.2f} times as fast as 'highest', error {medium.error:.0e} against {plain.error:.0e}"


def probe(setting: str, device: str | torch.device = "cpu", repeats: int = 5) -> Product:
    """A product's best time, and its error against float64, at a setting of float32 products, which is put back."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(512, 1024, generator=generator).to(device) for _ in range(2))
    exact = a.cpu().double() @ b.cpu().double().T
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        seconds = []
        for _ in range(1 + repeats):
            start = time.perf_counter()
            product = (a @ b.T).cpu()
            seconds.append(time.perf_counter() - start)
    finally:
        torch.set_float32_matmul_precision(before)
    return Product(min(seconds[1:]), float((product - exact).abs().max() / exact.abs().max()))
