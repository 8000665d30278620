"""What stands in the way of a kernel with a hand-written gradient, whatever it computes."""

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from rtx.nn.kernels.native import build


def no_hand_written_gradient(x: Tensor, *others: object) -> str | None:
    """Why an `autograd.Function` of eager torch on the CPU cannot take `x` and its `others`, or None if it can."""
    if x.device.type != "cpu":
        return f"it is made for the CPU, and x is on {x.device}"
    return no_own_gradient() or no_numbers(x, *others)


def no_own_gradient() -> str | None:
    """Why no `autograd.Function` at all can be used here, or None if one can."""
    if torch.compiler.is_compiling():
        return "torch.compile fuses the plain version itself"
    if torch.jit.is_tracing():
        return "what is traced must be operations of torch's own"
    if torch._C._are_functorch_transforms_active():
        return "torch.func transforms take no hand-written gradient"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives take no hand-written gradient"
    return None


def no_numbers(*arguments: object) -> str | None:
    """Why there may be nothing to compute with: a subclass of Tensor, as the parts of a distributed one, or a fake."""
    for one in arguments:
        if isinstance(one, Tensor) and type(one) not in (Tensor, nn.Parameter):
            return f"it is made for plain tensors, and one is a {type(one).__name__}"
    if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
        return "within FakeTensorMode tensors have no numbers"
    return None


def no_native_code(x: Tensor, *others: object) -> str | None:
    """Why a kernel in C++ cannot take `x` and its `others`, or None if it can.

    Where nothing else is in the way, it may be compiled.
    """
    if torch.compiler.is_compiling():  # asked first: what else is asked here would break the graph
        return no_own_gradient()
    if torch.is_autocast_enabled("cpu"):
        if (dtype := torch.get_autocast_dtype("cpu")) != torch.float32:
            return f"it is written for float32, and autocast is {dtype}"
    elif x.dtype != torch.float32:
        return f"it is written for float32, and x is {x.dtype}"
    said = no_hand_written_gradient(x, *others) or _no_plain_memory(x, *others)
    if said:
        return said
    if torch._C._len_torch_dispatch_stack():
        return "a dispatch mode sees torch's operations, and nothing of what C++ does"
    return build.obstacle()


def _no_plain_memory(x: Tensor, *others: object) -> str | None:
    """Why the bytes of an argument are not those of its numbers in float32, as C++ takes them to be."""
    for one in (x, *others):
        name = "x" if one is x else "one argument"
        if not isinstance(one, Tensor):
            continue
        if one.device.type != "cpu":
            return f"it is made for the CPU, and {name} is on {one.device}"
        if one.is_floating_point() and one.dtype != torch.float32:
            return f"it is written for float32, and {name} is {one.dtype}"
        if one.is_neg():  # as the imaginary part of a conjugate is
            return f"it reads memory as it lies, and {name} is a view of it with the other sign"
    return None
