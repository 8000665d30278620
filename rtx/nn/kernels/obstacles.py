"""What stands in the way of a kernel with a hand-written gradient, whatever it computes."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def no_hand_written_gradient(x: Tensor) -> str | None:
    """Why an `autograd.Function` of eager torch on the CPU cannot take `x`, or None if it can."""
    if torch.compiler.is_compiling():
        return "torch.compile fuses the plain version itself"
    if x.device.type != "cpu":
        return f"it is made for the CPU, and x is on {x.device}"
    if torch._C._are_functorch_transforms_active():
        return "torch.func transforms take no hand-written gradient"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives take no hand-written gradient"
    return None
