"""When an implementation cannot be used: each function returns the reason, or None if there is no obstacle."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from rtx.nn.ops import build


def no_custom_gradient(*arguments: object) -> str | None:
    """Why an `autograd.Function` with its own backward pass cannot be used here, on any device."""
    if torch.compiler.is_compiling():
        return "torch.compile optimises the plain version itself"
    if torch.jit.is_tracing():
        return "a trace can hold torch's own operations only"
    if torch._C._are_functorch_transforms_active():
        return "torch.func cannot transform a custom gradient"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation needs torch's own operations"
    for one in arguments:
        if isinstance(one, Tensor) and type(one) not in (Tensor, nn.Parameter):
            return f"it handles plain tensors, and one argument is a {type(one).__name__}"
    if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
        return "tensors have no values inside FakeTensorMode"
    return None


def not_on_cpu(x: Tensor, *others: object) -> str | None:
    """Why a CPU implementation with a custom gradient cannot be used for `x` and the other arguments."""
    if x.device.type != "cpu":
        return f"it runs on the CPU, and x is on {x.device}"
    kinds = {one.dtype for one in (x, *others) if isinstance(one, Tensor)}
    if not x.is_floating_point() or (len(kinds) > 1 and not torch.is_autocast_enabled("cpu")):
        return f"it needs floating-point numbers of one dtype, and these are {kinds}"
    return no_custom_gradient(x, *others)


def no_native_code(x: Tensor, *others: object) -> str | None:
    """Why a C++ implementation cannot be used for `x` and the other arguments. May compile the library."""
    if torch.compiler.is_compiling():  # check this first: the checks below would break the graph
        return no_custom_gradient()
    if torch.is_autocast_enabled("cpu") and (dtype := torch.get_autocast_dtype("cpu")) != torch.float32:
        return f"it is written for float32, and autocast uses {dtype}"
    for one in (x, *others):
        if isinstance(one, Tensor):
            if one.dtype != torch.float32:
                return f"it is written for float32, and one argument is {one.dtype}"
            if one.device.type != "cpu":
                return f"it runs on the CPU, and one argument is on {one.device}"
            if one.is_neg():  # a view with the opposite sign: the memory does not hold its values
                return "it reads memory directly, and one argument is a negated view"
    reason = not_on_cpu(x, *others)
    if reason is None and torch._C._len_torch_dispatch_stack():
        reason = "a torch dispatch mode cannot see operations in C++"
    return reason or build.obstacle()


def other_sizes(**expected: tuple[Tensor, Sequence[int | None]]) -> str | None:
    """Why code that reads memory, or divides by sizes, cannot be used: a tensor has other sizes, or one is 0.

    The arguments are tensors by name, each with its shape. None allows any size.
    """
    for name, (tensor, shape) in expected.items():
        sizes = zip(tensor.shape, shape, strict=False)
        if tensor.ndim != len(shape) or not all(size and wanted in (None, size) for size, wanted in sizes):
            allowed = tuple("any" if size is None else size for size in shape)
            return f"it needs {name} with sizes {allowed}, none of them 0, and this is {tuple(tensor.shape)}"
    return None


def replaced(*layers: nn.Module | None) -> bool:
    """Whether calling one of the layers can do more than its weight says, so that it must be called.

    This is so if it is not exactly `nn.Linear` (but a LoRA or quantised layer, for example), and if it has hooks.
    Hooks of all modules at once do not count: torch's counter of operations has such hooks, and must see the fast way.
    """
    return any(
        type(layer) is not nn.Linear
        or "forward" in vars(layer)
        or layer._forward_hooks
        or layer._forward_pre_hooks
        or layer._backward_hooks
        or layer._backward_pre_hooks
        for layer in layers
        if layer is not None
    )
