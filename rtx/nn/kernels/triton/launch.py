"""What every launch of a kernel needs."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def on(x: Tensor) -> AbstractContextManager[object]:
    """Within it, kernels are launched where `x` is: Triton takes the current device."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def precision() -> str:
    """How the tensor cores multiply float32: they take tf32, of which three products are as exact as one of float32.

    So it is done as long as torch's own setting for products is "highest", and else by one product, as torch does.
    """
    # from torch 2.9 on there is a setting by device, after whose use the older one may not even be asked for
    found = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    exact = torch.get_float32_matmul_precision() == "highest" if found is None else found != "tf32"
    return "tf32x3" if exact else "tf32"
