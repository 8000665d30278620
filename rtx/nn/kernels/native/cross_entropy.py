"""The two passes of cross-entropy over many classes in C++."""

import ctypes

import torch
from jaxtyping import Float
from torch import Tensor

from rtx.nn.kernels.native.build import library

SMALL = 2**18  # logits: below, a second thread costs more than it does


def log_sums(logits: Float[Tensor, "N V"]) -> Float[Tensor, "N 1"]:
    """log Σ exp of each row."""
    logits = logits.contiguous()
    found = logits.new_empty(len(logits), 1)
    _call("log_sums", logits, found)
    return found


def softmax_shares(
    logits: Float[Tensor, "N V"], log_sum: Float[Tensor, "N 1"], share: Float[Tensor, "N 1"]
) -> Float[Tensor, "N V"]:
    """Each row's softmax, times its share."""
    logits = logits.contiguous()
    found = torch.empty_like(logits)
    _call("softmax_shares", logits, log_sum, share.contiguous(), found)
    return found


def _call(name: str, logits: Tensor, *arrays: Tensor) -> None:
    threads = torch.get_num_threads() if logits.numel() >= SMALL else 1
    sizes = (*map(ctypes.c_int64, logits.shape), threads)
    getattr(library(), name)(*sizes, *(ctypes.c_void_p(array.data_ptr()) for array in (logits, *arrays)))
