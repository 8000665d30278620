"""What stands in the way of a kernel with a hand-written gradient, whatever it computes."""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from rtx.nn.kernels.native import build


def no_hand_written_gradient(x: Tensor) -> str | None:
    """Why an `autograd.Function` of eager torch on the CPU cannot take `x`, or None if it can."""
    if x.device.type != "cpu":
        return f"it is made for the CPU, and x is on {x.device}"
    return no_own_gradient()


def no_own_gradient() -> str | None:
    """Why no `autograd.Function` at all can be used here, or None if one can."""
    if torch.compiler.is_compiling():
        return "torch.compile fuses the plain version itself"
    if torch._C._are_functorch_transforms_active():
        return "torch.func transforms take no hand-written gradient"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives take no hand-written gradient"
    return None


def no_native_code(x: Tensor) -> str | None:
    """Why a kernel in C++ cannot take `x`, or None if it can; where nothing else is in the way, it may be compiled."""
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    if dtype != torch.float32:
        return f"it is written for float32, and x is {dtype}"
    if x.is_neg():  # as the imaginary part of a conjugate is
        return "it reads memory as it lies, and x is a view of it with the other sign"
    return no_hand_written_gradient(x) or build.obstacle()
